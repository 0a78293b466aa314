"""Weighers, one file each; each has WEIGHER rows. `registry` lists them, `normalise` makes scores of raw weights."""
