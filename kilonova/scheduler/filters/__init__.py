"""Filters, one file each; each has a FILTER row. `registry` lists them by the names operators configure."""
