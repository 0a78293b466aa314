"""Revisions of the tables of the API database."""
