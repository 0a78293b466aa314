"""PCI devices given to guests whole: which a host offers, what is asked for, what is left. Pure values."""
