"""Revisions of the tables of Placement's database."""
