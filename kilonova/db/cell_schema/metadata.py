"""The collection every table of a cell database belongs to."""

from kilonova.sql.types import new_metadata

metadata = new_metadata()
