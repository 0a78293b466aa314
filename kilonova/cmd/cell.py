"""`kilonova cell`: the registry of cells and of their hosts.

Names, options and exit codes are those of `nova-manage cell_v2`.
Addresses that are not given are those of the configuration. Passwords in addresses are shown only with --verbose.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kilonova.cmd import configuration, tables
from kilonova.core.errors import KilonovaError
from kilonova.core.urls import masked_database, masked_transport

if TYPE_CHECKING:
    from kilonova.sql.engine import Database

Option = tuple[tuple[str, ...], Mapping[str, Any]]

NAME: Final[Option] = (("--name",), {"help": "name of the cell"})
TRANSPORT: Final[Option] = (
    ("--transport-url", "--transport_url"),
    {"dest": "transport_url", "metavar": "URL", "help": "the cell's message broker (default [DEFAULT]transport_url)"},
)
DATABASE: Final[Option] = (
    ("--database_connection", "--database-connection"),
    {"dest": "database_connection", "metavar": "URL", "help": "the cell's database (default [database]connection)"},
)
VERBOSE: Final[Option] = (("--verbose",), {"action": "store_true", "help": "say more"})


def _uuid(*, required: bool) -> Option:
    options = {"dest": "cell_uuid", "required": required, "metavar": "UUID", "help": "the cell's uuid"}
    return ("--cell_uuid", "--cell-uuid"), options


def _flag(name: str, text: str) -> Option:
    return (name,), {"action": "store_true", "help": text}


@dataclass(frozen=True)
class Action:
    """One action. codes: exit codes of errors by their stable code; others are 1. table: it has a format to choose."""

    text: str
    run: Callable[[argparse.Namespace, Any, Database], int]
    options: tuple[Option, ...] = ()
    codes: Mapping[str, int] = field(default_factory=dict)
    table: bool = False


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and actions."""
    configuration.options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, action in ACTIONS.items():
        child = actions.add_parser(name, help=action.text, description=action.text[0].upper() + action.text[1:] + ".")
        configuration.options(child, inner=True)
        for names, options in action.options:
            child.add_argument(*names, **options)
        if action.table:
            tables.options(child)


def run(arguments: argparse.Namespace) -> int:
    """Do the action on the API database, which must have its tables."""
    from kilonova.conf import databases
    from kilonova.db.prepare import require_api
    from kilonova.sql import reach

    action = ACTIONS[arguments.action]
    conf = configuration.load(arguments)
    api = databases.open_database(conf, "api_database")
    try:
        reach.wait(api, arguments.wait, say=configuration.say)
        with reach.in_words(api):
            require_api(api)
            return action.run(arguments, conf, api)
    except KilonovaError as error:
        print(f"kilonova: {error.text}", file=sys.stderr)
        return action.codes.get(error.code, 1)
    finally:
        api.dispose()


def _map_cell0(arguments: argparse.Namespace, conf: Any, api: Database) -> int:
    from kilonova.cells import registry
    from kilonova.conf import databases

    address = arguments.database_connection or databases.cell0_address(conf)
    done = registry.map_cell0(api, address)
    print(f"cell0 {'is registered' if done else 'was registered already'}: {masked_database(address)}")
    return 0


def _create(arguments: argparse.Namespace, conf: Any, api: Database) -> int:
    from kilonova.cells import registry

    uuid = registry.create(
        api, name=arguments.name, transport_url=_transport(arguments, conf), disabled=arguments.disabled,
        database_connection=_database(arguments, conf),
    )  # fmt: skip
    if arguments.verbose:
        print(uuid)
    return 0


def _list(arguments: argparse.Namespace, _conf: Any, api: Database) -> int:
    from kilonova.cells import registry

    def shown(mask: Callable[[str], str], address: str) -> str:
        return address if arguments.verbose else mask(address)

    rows = [
        (row.name, row.uuid, shown(masked_transport, row.transport_url),
         shown(masked_database, row.database_connection), bool(row.disabled))
        for row in registry.listed(api)
    ]  # fmt: skip
    tables.show(("Name", "UUID", "Transport URL", "Database Connection", "Disabled"), rows, arguments.format)
    return 0


def _update(arguments: argparse.Namespace, conf: Any, api: Database) -> int:
    from kilonova.cells import registry

    if arguments.enable and arguments.disable:
        print("kilonova: A cell cannot be enabled and disabled at once.", file=sys.stderr)
        return 4
    names = ("name", "transport_url", "database_connection")
    values = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if not values and not arguments.enable and not arguments.disable:  # the configuration has changed
        values = {"transport_url": _transport(arguments, conf), "database_connection": _database(arguments, conf)}
    disabled = True if arguments.disable else False if arguments.enable else None
    registry.update(api, arguments.cell_uuid, disabled=disabled, **values)
    return 0


def _delete(arguments: argparse.Namespace, _conf: Any, api: Database) -> int:
    from kilonova.cells import registry

    registry.delete(api, arguments.cell_uuid, force=arguments.force)
    return 0


def _discover(arguments: argparse.Namespace, conf: Any, api: Database) -> int:
    from kilonova.cells import registry
    from kilonova.conf import databases

    found = registry.discover(api, databases.opener(conf), arguments.cell_uuid, by_service=arguments.by_service)
    for cell in found:
        if arguments.verbose:
            print(f"Cell {cell.name or cell.uuid}: {cell.hosts} hosts report, {len(cell.mapped)} of them are new")
            print(*(f"  {host} mapped to {cell.uuid}" for host in cell.mapped), sep="\n", end="\n" * bool(cell.mapped))
        for host, other in cell.elsewhere.items():
            text = f"Host {host} reports in cell {cell.uuid} and is mapped to cell {other}: one of them must go."
            print(f"kilonova: {text}", file=sys.stderr)
    if any(cell.elsewhere for cell in found):
        return 2
    return 1 if arguments.strict and not any(cell.mapped for cell in found) else 0


def _hosts(arguments: argparse.Namespace, _conf: Any, api: Database) -> int:
    from kilonova.cells import registry

    rows = registry.hosts_of(api, arguments.cell_uuid)
    tables.show(("Cell Name", "Cell UUID", "Hostname"), rows, arguments.format)
    return 0


def _delete_host(arguments: argparse.Namespace, conf: Any, api: Database) -> int:
    from kilonova.cells import registry
    from kilonova.conf import databases

    registry.delete_host(api, databases.opener(conf), arguments.cell_uuid, arguments.host)
    return 0


def _transport(arguments: argparse.Namespace, conf: Any) -> str:
    from kilonova.cells.registry import AddressMissing

    address = arguments.transport_url or conf.transport_url
    if not address:
        raise AddressMissing(what="message broker", option="--transport-url", setting="transport_url in [DEFAULT]")
    return str(address)


def _database(arguments: argparse.Namespace, conf: Any) -> str:
    from kilonova.cells.registry import AddressMissing
    from kilonova.conf import databases

    if not arguments.database_connection and not databases.is_named(conf, "database"):
        raise AddressMissing(what="database", option="--database_connection", setting="connection in [database]")
    return str(arguments.database_connection or databases.address(conf, "database"))


ACTIONS: Final[Mapping[str, Action]] = {
    "map_cell0": Action("register cell0, where servers are that never found a host", _map_cell0, (
        (DATABASE[0], {**DATABASE[1], "help": "its database (default [database]connection, ending in _cell0)"}),
    )),
    "create_cell": Action("register a cell", _create, (
        NAME, TRANSPORT, DATABASE, _flag("--disabled", "get no new servers"),
        _flag("--verbose", "print the new cell's uuid"),
    ), {"cell_exists": 2}),
    "list_cells": Action("show the cells", _list, (_flag("--verbose", "show passwords in addresses"),), table=True),
    "update_cell": Action(
        "change a cell; with nothing to change, its addresses become those of the configuration", _update, (
            _uuid(required=True), NAME, TRANSPORT, DATABASE, _flag("--disable", "get no new servers"),
            _flag("--enable", "get new servers again"),
        ), {"no_such_cell": 1, "cell_exists": 3, "cell0_stays": 5, "database_address_unusable": 2,
            "cell_transport_invalid": 2}),
    "delete_cell": Action("remove a cell from the registry", _delete, (
        _uuid(required=True), _flag("--force", "also with hosts, and with records of deleted servers"),
    ), {"no_such_cell": 1, "cell_has_hosts": 2, "cell_has_servers": 3, "cell_has_deleted_servers": 4}),
    "discover_hosts": Action("take hosts that report and are in no cell yet into their cells", _discover, (
        _uuid(required=False), _flag("--strict", "exit code 1 when there are none"),
        _flag("--by-service", "go by services rather than compute nodes"), VERBOSE,
    )),
    "list_hosts": Action("show the hosts", _hosts, (_uuid(required=False),), table=True),
    "delete_host": Action("take a host without servers out of its cell", _delete_host, (
        _uuid(required=True), (("--host",), {"required": True, "help": "name of the host"}),
    ), {"no_such_cell": 1, "no_such_host": 2, "host_elsewhere": 3, "host_has_servers": 4}),
}  # fmt: skip
