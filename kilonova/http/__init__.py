"""The kit that every web application of ours is built from: operation rows, ranged fields, views, faults, paging."""
