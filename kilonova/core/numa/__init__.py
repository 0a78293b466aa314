"""NUMA: what a host's cells have, what a guest wants of them, and how the one fits into the other. Pure values."""
