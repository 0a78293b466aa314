"""The only place that chooses real, embedded, local or remote, by configuration. Everything else is one code path.

A module per process, so that each imports only what it runs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kilonova.wiring.one_process import all_in_one
    from kilonova.wiring.parts import Cloud

__all__ = ["Cloud", "all_in_one"]


def __getattr__(name: str) -> Any:
    if name == "all_in_one":
        from kilonova.wiring.one_process import all_in_one

        return all_in_one
    if name == "Cloud":
        from kilonova.wiring.parts import Cloud

        return Cloud
    raise AttributeError(name)
