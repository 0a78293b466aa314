"""The only place that chooses real, embedded, local or remote, by configuration. Everything else is one code path."""

from kilonova.wiring.one_process import all_in_one
from kilonova.wiring.parts import Cloud

__all__ = ["Cloud", "all_in_one"]
