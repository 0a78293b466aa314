"""`kilonova aggregates sync`: hosts whose resource providers are not in Placement's aggregates are put there.

A host joins Placement's aggregate when it is added to the cloud's; this is for when that failed. Nothing is taken out.
Exit codes are those of `nova-manage placement sync_aggregates`: 0 all is well, 1 a host has several nodes, 2 it could
not be looked at, 3 Placement could not be changed, 5 a host has no node, 6 a node has no resource provider.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kilonova.clients.aggregates import HttpAggregates
from kilonova.clients.placement import Placement, ProviderConflict, ProviderNotFound
from kilonova.clients.rest import Doc
from kilonova.cmd import configuration
from kilonova.cmd.cloud_access import open_cloud
from kilonova.core.errors import KilonovaError

DONE, SEVERAL_NODES, COULD_NOT, NOT_CHANGED, NO_NODE, NO_PROVIDER = 0, 1, 2, 3, 5, 6
_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one host in one aggregate. code: as the command would end with it alone."""

    code: int
    text: str


def run(arguments: argparse.Namespace) -> int:
    """Compare and repair; every host is tried, and the first that went wrong decides the exit code."""
    try:
        cloud = open_cloud(arguments, configuration.load(arguments, "placement"))
        if isinstance(cloud, str):
            return _failed(cloud)
        compute = HttpAggregates(cloud.compute)
        nodes: dict[str, list[str]] = {}
        for provider, host in compute.nodes().items():
            nodes.setdefault(host, []).append(provider)
        code = DONE
        for step in sync(compute.aggregates(), nodes, cloud.placement, dry_run=arguments.dry_run):
            print(step.text, file=sys.stderr if step.code else sys.stdout)
            code = code or step.code
    except KilonovaError as error:
        return _failed(error.text)
    return code


def sync(
    aggregates: Iterable[Doc], nodes: Mapping[str, list[str]], placement: Placement, *, dry_run: bool
) -> Iterator[Step]:
    """Put every host of the aggregates where it belongs. nodes: the providers of each host."""
    for aggregate in aggregates:
        for host in sorted(aggregate["hosts"]):
            found = nodes.get(host, [])
            if not found:
                text = "has no node: let it report, or remove it."
                yield Step(NO_NODE, f"{host} of aggregate {aggregate['name']} {text}")
            elif len(found) > 1:
                yield Step(SEVERAL_NODES, f"{host} of aggregate {aggregate['name']} has {len(found)} nodes.")
            else:
                yield from _join(placement, found[0], aggregate, host, dry_run=dry_run)


def _join(placement: Placement, provider: str, aggregate: Doc, host: str, *, dry_run: bool) -> Iterator[Step]:
    where = f"{host} in aggregate {aggregate['name']}"
    try:
        for _ in range(_TRIES):
            known, generation = placement.aggregates(provider)
            if aggregate["uuid"] in known:
                return
            if dry_run:
                yield Step(DONE, f"Would put {where}.")
                return
            try:
                placement.set_aggregates(provider, {*known, aggregate["uuid"]}, generation)
            except ProviderConflict:  # somebody else changed it meanwhile
                continue
            yield Step(DONE, f"Put {where}.")
            return
        yield Step(NOT_CHANGED, f"{where} could not be put: its provider changes all the time. Try again.")
    except ProviderNotFound:
        yield Step(NO_PROVIDER, f"{where} could not be put: Placement has no resource provider {provider}.")
    except KilonovaError as error:
        yield Step(NOT_CHANGED, f"{where} could not be put: {error.text}")


def _failed(text: str) -> int:
    print(f"kilonova: The aggregates could not be looked at: {text}", file=sys.stderr)
    return COULD_NOT
