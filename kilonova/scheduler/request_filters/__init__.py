"""Request filters, one file each; each has a REQUEST_FILTER row. `registry` has their order, which never changes."""
