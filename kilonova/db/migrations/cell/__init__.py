"""Revisions of the tables of a cell database (cell0 is one)."""
