"""Where the databases are that a configuration names, and how they are opened.

A group without `connection` means an SQLite file under `state_path`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kilonova.core.errors import Invalid

if TYPE_CHECKING:
    from kilonova.sql.engine import Database

FILES: Final = {"api_database": "api", "database": "cell1", "placement_database": "placement"}
"""Group to the name of its SQLite file. `[database]` is the cell's. An embedded service's has the service's name."""
CELL0_FILE: Final = "cell0"


class StatePathUnusable(Invalid):
    code = "state_path_unusable"
    message = (
        "The directory {path} cannot be used for SQLite files: {reason}."
        " Set state_path in [DEFAULT], or connection in [{group}]."
    )


def is_named(conf: Any, group: str) -> bool:
    """Whether the configuration says where the database of a group is."""
    return bool(conf[group].connection)


def address(conf: Any, group: str) -> str:
    """The URL of the database of a group."""
    options = conf[group]
    return str(options.connection or _file(conf, FILES[group]))


def cell0_address(conf: Any) -> str:
    """The URL of cell0: beside the cell's, with `_cell0` after its name."""
    if not is_named(conf, "database"):
        return _file(conf, CELL0_FILE)
    from kilonova.sql.address import beside

    return beside(conf.database.connection, "_cell0")


def embedded_address(conf: Any, service: str) -> str:
    """The URL of the database of an embedded service: identity, images, network or volumes."""
    url = conf.embedded.connection
    return str(url.format(service=service)) if url else _file(conf, service)


def open_database(conf: Any, group: str) -> Database:
    """The database of a group. AddressUnusable, StatePathUnusable."""
    if not is_named(conf, group):
        _make_directory(conf, group)
    return opener(conf, group)(address(conf, group))


def opener(conf: Any, group: str = "database") -> Callable[[str], Database]:
    """Opens addresses with the pool that a group has: for the cells, whose addresses are in the registry."""
    from kilonova.sql.engine import Database

    options = conf[group]
    pool = {"pool_size": options.max_pool_size, "max_overflow": options.max_overflow}
    if options.pool_timeout is not None:
        pool["pool_timeout"] = max(0, options.pool_timeout)
    return lambda url: Database(url, **pool)


def _file(conf: Any, name: str) -> str:
    return f"sqlite:///{(Path(conf.state_path) / name).absolute()}.db"


def _make_directory(conf: Any, group: str) -> None:
    try:
        Path(conf.state_path).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StatePathUnusable(path=conf.state_path, reason=reason, group=group) from error
