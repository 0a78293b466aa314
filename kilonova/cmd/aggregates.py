"""`kilonova aggregates audit`: which properties of aggregates nothing reads, and which locks shut one way only; and
`sync`, which repairs their mirror in Placement (`aggregate_mirror`).

What is asked is the compute API and Placement, as administrator; which filters are on, the configuration file says.
Exit code 0 when all is well, 1 when something was found, 2 when it could not be looked at.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kilonova.cmd import configuration, state_dir, tables

_KINDS = ("dead-property", "host-in-no-aggregate", "wrong-key", "one-way-lock")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    configuration.options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    audit = _action(actions, "audit", "say what is wrong with the aggregates of a cloud")
    sync = _action(actions, "sync", "make Placement's aggregates have the hosts that the cloud's have")
    sync.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add = audit.add_argument
    add("--ignore", choices=_KINDS, action="append", default=[], help="leave out findings of this kind, repeatable")
    tables.options(audit)


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    configuration.options(made, inner=True)
    state_dir.configure(made)
    made.add_argument("--os-cloud", metavar="NAME", help="the cloud of clouds.yaml as whose administrator is asked")
    made.add_argument("--region", metavar="NAME", help="region of the catalogue (default: that of the cloud, or any)")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Do the action."""
    if arguments.action == "sync":
        from kilonova.cmd import aggregate_mirror

        return aggregate_mirror.run(arguments)
    return _audit(arguments)


def _audit(arguments: argparse.Namespace) -> int:
    """Look, and show what was found."""
    from kilonova.cmd.cloud_access import open_cloud
    from kilonova.core.errors import KilonovaError
    from kilonova.scheduler import aggregate_audit

    try:
        conf = configuration.load(arguments)
        cloud = open_cloud(arguments, configuration.load(arguments, "placement"))  # which knows no service's options
        if isinstance(cloud, str):
            return _failed(cloud)
        found = aggregate_audit.audit(_facts(cloud, conf))
    except KilonovaError as error:
        return _failed(error.text)
    shown = [row for row in found if row.kind not in arguments.ignore]
    if shown or arguments.format == "json":
        rows = [(row.kind, row.subject, row.text) for row in shown]
        tables.show(("Kind", "Subject", "Found"), rows, arguments.format)
    else:
        print("Nothing is wrong with the aggregates.")
    return 1 if shown else 0


def _failed(text: str) -> int:
    print(f"kilonova: The aggregates could not be looked at: {text}", file=sys.stderr)
    return 2


def _facts(cloud: Any, conf: Any) -> Any:
    from kilonova.clients.aggregates import HttpAggregates
    from kilonova.clients.rest import RemoteInvalid
    from kilonova.scheduler import settings
    from kilonova.scheduler.aggregate_audit import Aggregate, Facts, wanted_traits

    compute = HttpAggregates(cloud.compute)
    rows = [Aggregate(row["name"], frozenset(row["hosts"]), row["metadata"]) for row in compute.aggregates()]
    nodes = compute.nodes()
    traits: dict[str, frozenset[str]] = {}
    for trait in wanted_traits(rows):
        try:
            having = cloud.placement.list_providers(required=trait)
        except RemoteInvalid:  # no such trait: no host has it
            having = []
        traits[trait] = frozenset(nodes[row["uuid"]] for row in having if row["uuid"] in nodes)
    return Facts(rows, frozenset(compute.hosts()), settings.from_conf(conf), compute.flavors(), traits)
