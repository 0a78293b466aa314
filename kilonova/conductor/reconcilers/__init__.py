"""Repair of what no workflow owns: one idempotent file each. They may run at any time, on any number of conductors."""
