"""Programs for those who work on Kilonova; none of them is part of the package."""
