"""Which providers a list shows. Conditions on stock, traits and aggregates are looked up in the snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from kilonova.core import ids
from kilonova.http.op import Request
from kilonova.placement.api import parameters
from kilonova.placement.candidates import select
from kilonova.placement.candidates.request import Group, Slot
from kilonova.placement.candidates.snapshot import Snapshot
from kilonova.placement.store import providers as store
from kilonova.placement.store.keeper import View
from kilonova.placement.store.providers import Provider

FLAGS = {
    "forbidden_traits": "1.22",
    "repeated_aggregates": "1.24",
    "forbidden_aggregates": "1.32",
    "any_traits": "1.39",
}

REQUIRED = (
    "Traits to be had: A,B. From 1.22 on !A is a trait not to be had; from 1.39 on in:A,B is any of some, and every "
    "repetition counts, before only the last."
)
MEMBER_OF = (
    "The UUID of an aggregate to be a member of, or in:A,B for any of some. From 1.24 on it may be repeated, and every "
    "repetition counts; from 1.32 on !A and !in:A,B are aggregates not to be in."
)
"""What the filters that lists and candidates have in common mean, for people."""

_OWN = "list"
"""A list looks at each provider by itself, as a suffixed group does."""


def providers(req: Request) -> list[Provider]:
    """The providers that a list request asks for, by creation."""
    query = req.query
    named = _by_identity(req) if {"name", "uuid", "in_tree"} & query.keys() else None
    if named is not None and not {"resources", "required", "member_of"} & query.keys():
        return named
    view: View = req.world.keeper.current()
    snapshot = view.snapshot
    rows = select.eligible(snapshot, Slot(0, _OWN, _needs(req, view)), _mask(req, view))
    found = [_provider(snapshot, row) for row in rows.tolist()]
    if named is not None:
        wanted = {one.uuid for one in named}
        found = [one for one in found if one.uuid in wanted]
    return sorted(found, key=lambda one: one.id)


def _by_identity(req: Request) -> list[Provider]:
    query: dict[str, Any] = req.query
    with req.world.database.read() as connection:
        if "uuid" in query:
            found = store.with_uuid(connection, ids.canonical_uuid(query["uuid"]))
        elif "name" in query:
            found = store.named(connection, query["name"])
        else:
            return store.tree_of(connection, ids.canonical_uuid(query["in_tree"]))
        if "in_tree" in query:
            tree = {one.uuid for one in store.tree_of(connection, ids.canonical_uuid(query["in_tree"]))}
            found = [one for one in found if one.uuid in tree]
    return [one for one in found if query.get("name", one.name) == one.name]


def _needs(req: Request, view: View) -> tuple[tuple[int, int], ...]:
    text = req.query.get("resources")
    return () if text is None else parameters.resources(text, view.names)


def _mask(req: Request, view: View) -> np.ndarray[Any, Any] | None:
    query = req.query
    required, forbidden = parameters.required(
        query.get("required", ()), view.names, forbidding=req.flag("forbidden_traits"), any_of=req.flag("any_traits")
    )
    member_of, not_member_of = parameters.member_of(
        query.get("member_of", ()), forbidding=req.flag("forbidden_aggregates"), repeats=req.flag("repeated_aggregates")
    )
    group = Group(_OWN, (), required, forbidden, member_of, not_member_of)
    return select.allowed_rows(view.snapshot, group, collective=False)


def _provider(snapshot: Snapshot, row: int) -> Provider:
    shown = snapshot.shown[row]
    assert shown is not None
    return Provider(
        shown.id, shown.uuid, shown.name, int(snapshot.generation[row]), shown.parent_uuid, shown.root_uuid,
        shown.updated_at,
    )  # fmt: skip
