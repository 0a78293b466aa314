"""The collection every table of the API database belongs to."""

from kilonova.sql.types import new_metadata

metadata = new_metadata()
