"""A request laid out over a snapshot: for each anchor, which rows may take which slot.

An anchor is the root of a tree; its scope is the tree and the sharing providers tied to it: those in an aggregate of
which any provider of the tree is a member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kilonova.placement.candidates import select
from kilonova.placement.candidates.request import Group, Query, Slot
from kilonova.placement.candidates.snapshot import Ints, Mask, Rows, Snapshot


@dataclass(frozen=True, slots=True)
class Ties:
    """Pairs of a sharing row and an anchor, not its own, whose tree it serves."""

    rows: Rows
    anchors: Rows


@dataclass(frozen=True, slots=True)
class Problem:
    """Slot `s` may go to `rows[s][start[s][t] : start[s][t] + count[s][t]]` in the scope of `anchors[t]`.

    limits: by class id, for every row of the snapshot what a request may take of it at once: the lesser of its room
    and its max_unit.
    """

    snapshot: Snapshot
    query: Query
    slots: tuple[Slot, ...]
    anchors: Rows
    rows: list[Rows]
    start: list[Ints]
    count: list[Ints]
    limits: dict[int, Ints]

    def options(self, slot: int, tree: int) -> list[int]:
        """The rows that may take a slot in one scope."""
        start = int(self.start[slot][tree])
        found: list[int] = self.rows[slot][start : start + int(self.count[slot][tree])].tolist()
        return found


def ties(snapshot: Snapshot, shared: Rows) -> Ties:
    """Whom the sharing rows serve."""
    rows: list[Rows] = []
    anchors: list[Rows] = []
    for row in shared.tolist():
        shown = snapshot.shown[row]
        members = [snapshot.aggregates[aggregate] for aggregate in shown.aggregates] if shown else []
        if members:
            served = np.unique(snapshot.root[np.concatenate(members)])
            served = served[served != snapshot.root[row]]
            rows.append(np.full(len(served), row, np.int32))
            anchors.append(served.astype(np.int32))
    none = np.zeros(0, np.int32)
    return Ties(np.concatenate(rows) if rows else none, np.concatenate(anchors) if anchors else none)


def lay_out(
    snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], shared: Rows, tied: Ties, among: Mask
) -> Problem:
    """The problem over the rows of `among`, for the anchors in whose scope every slot has a row."""
    fits = among & (snapshot.root == np.arange(len(snapshot)))
    good = select.allowed_roots(snapshot, query)
    if good is not None:
        fits &= good
    masks = [select.allowed_rows(snapshot, group, collective=not group.suffix) for group in query.groups]
    _sharers_by_themselves(snapshot, query, shared, masks)
    pairs: list[tuple[Rows, Rows]] = []
    for slot in slots:
        rows = select.eligible(snapshot, slot, masks[slot.group])
        pairs.append(_pairs(snapshot, rows[among[rows]], tied))
        fits &= np.bincount(pairs[-1][0], minlength=len(snapshot)).astype(np.bool_)
    anchors = np.nonzero(fits)[0].astype(np.int32)
    starts = [np.searchsorted(owners, anchors) for owners, _ in pairs]
    ends = [np.searchsorted(owners, anchors, "right") for owners, _ in pairs]
    counts = [end - start for start, end in zip(starts, ends, strict=True)]
    return Problem(
        snapshot, query, slots, anchors, [rows for _, rows in pairs], starts, counts, _limits(snapshot, slots)
    )


def _pairs(snapshot: Snapshot, rows: Rows, tied: Ties) -> tuple[Rows, Rows]:
    """(anchor, row) pairs in the order of anchors; a tree's own rows come before the sharing ones."""
    owners = snapshot.root[rows]
    if len(tied.rows):
        serves = np.isin(tied.rows, rows)
        owners = np.concatenate([owners, tied.anchors[serves]])
        rows = np.concatenate([rows, tied.rows[serves]])
        order = np.argsort(owners, kind="stable")
        owners, rows = owners[order], rows[order]
    return owners, rows


def _limits(snapshot: Snapshot, slots: tuple[Slot, ...]) -> dict[int, Ints]:
    limits = {}
    for class_id in {class_id for slot in slots for class_id, _ in slot.needs}:
        limit = np.zeros(len(snapshot), np.int64)
        column = snapshot.columns.get(class_id)
        if column is not None:
            limit[column.rows] = np.minimum(column.room, column.high)
        limits[class_id] = limit
    return limits


def _sharers_by_themselves(snapshot: Snapshot, query: Query, shared: Rows, masks: list[Mask | None]) -> None:
    """Membership through the root does not count for a sharing provider: it must be (or not be) a member itself."""
    if not len(shared) or snapshot.flat:
        return
    for n, group in enumerate(query.groups):
        mask = masks[n]
        if group.suffix or mask is None or not (group.member_of or group.not_member_of):
            continue
        own = np.ones(len(snapshot), np.bool_)
        for aggregates in group.member_of:
            own &= select.members(snapshot, aggregates, through_root=False)
        if group.not_member_of:
            own &= ~select.members(snapshot, group.not_member_of, through_root=False)
        rest = select.allowed_rows(snapshot, _without_aggregates(group), collective=True)
        mask[shared] = own[shared] if rest is None else (own & rest)[shared]


def _without_aggregates(group: Group) -> Group:
    return Group(group.suffix, group.resources, group.required, group.forbidden, in_tree=group.in_tree)
