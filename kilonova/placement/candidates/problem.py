"""A request laid out over a snapshot: for each anchor, which rows may take which slot.

An anchor is the root of a tree; its scope is the tree and the sharing providers tied to it: those in an aggregate of
which any provider of the tree is a member.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kilonova.placement.candidates import select
from kilonova.placement.candidates.arrange import word_masks
from kilonova.placement.candidates.request import Group, Query, Slot
from kilonova.placement.candidates.snapshot import Ints, Mask, Rows, Snapshot

MOST_PAIRS = 1 << 23
"""The most (anchor, row) pairs that are held for a request, over all its slots."""


@dataclass(frozen=True, slots=True)
class Ties:
    """Pairs of a sharing row and an anchor, not its own, whose tree it serves."""

    rows: Rows
    anchors: Rows


@dataclass(frozen=True, slots=True)
class Problem:
    """Slot `s` may go to `rows[s][start[s][t] : start[s][t] + count[s][t]]` in the scope of `anchors[t]`.

    limits: by id of a class that several slots ask for, for every row of the snapshot what a request may take of it
    at once: the lesser of its room and its max_unit. collective: the trait sets of which the unsuffixed slots together
    need a member each, as masks by word. cut: there are more anchors than these. held: which of the trait sets a row
    meets, as bits, of the rows looked at so far.
    """

    snapshot: Snapshot
    query: Query
    slots: tuple[Slot, ...]
    anchors: Rows
    rows: list[Rows]
    start: list[Ints]
    count: list[Ints]
    limits: dict[int, Ints]
    collective: list[list[tuple[int, int]]]
    cut: bool
    held: dict[int, int] = field(default_factory=dict)

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
    """The problem over the rows of `among`, for the anchors in whose scope every slot has a row.

    Where that is more than fits in memory, only for as many of these anchors as the bound of work lets be looked at.
    """
    fits = among & (snapshot.root == np.arange(len(snapshot)))
    good = select.allowed_roots(snapshot, query)
    if good is not None:
        fits &= good
    wide = len(slots) * (len(snapshot) + len(tied.rows)) > MOST_PAIRS
    pairs: list[tuple[Rows, Rows]] = []
    for own, served in _rows_by_slot(snapshot, query, slots, shared, tied, among):
        fits &= _owners(snapshot, own, served)
        if not wide:
            pairs.append(_pairs(snapshot, own, served))
    anchors = np.nonzero(fits)[0].astype(np.int32)
    every = len(anchors)
    if wide:
        anchors = anchors[: max(1, query.steps // len(slots))]
        inside = _scopes(snapshot, anchors)
        pairs = [
            _pairs(snapshot, own[inside[own]], _of(served, np.isin(served.anchors, anchors)))
            for own, served in _rows_by_slot(snapshot, query, slots, shared, tied, among)
        ]
    starts = [np.searchsorted(owners, anchors) for owners, _ in pairs]
    ends = [np.searchsorted(owners, anchors, "right") for owners, _ in pairs]
    counts = [end - start for start, end in zip(starts, ends, strict=True)]
    return Problem(
        snapshot, query, slots, anchors, [rows for _, rows in pairs], starts, counts, _limits(snapshot, slots),
        _collective(snapshot, query), len(anchors) < every,
    )  # fmt: skip


def _rows_by_slot(
    snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], shared: Rows, tied: Ties, among: Mask
) -> Iterator[tuple[Rows, Ties]]:
    """For each slot the rows of trees that may take it, and the ties to sharing ones that may."""
    mask: Mask | None = None
    group = -1
    for slot in slots:
        if slot.group != group:
            group = slot.group
            mask = _allowed(snapshot, query.groups[group], shared)
        rows = select.eligible(snapshot, slot, mask)
        rows = rows[among[rows]]
        yield rows, _of(tied, np.isin(tied.rows, rows))


def _of(tied: Ties, which: Mask) -> Ties:
    return Ties(tied.rows[which], tied.anchors[which])


def _owners(snapshot: Snapshot, own: Rows, served: Ties) -> Mask:
    """The anchors in whose scope one of these rows is."""
    mask = np.zeros(len(snapshot), np.bool_)
    mask[snapshot.root[own]] = True
    mask[served.anchors] = True
    return mask


def _scopes(snapshot: Snapshot, anchors: Rows) -> Mask:
    """The rows of the trees of some anchors."""
    mask = np.zeros(len(snapshot), np.bool_)
    mask[anchors] = True
    return mask[snapshot.root]


def _collective(snapshot: Snapshot, query: Query) -> list[list[tuple[int, int]]]:
    bits = snapshot.trait_bits
    return [
        word_masks(bits, [trait for trait in traits if trait in bits])
        for group in query.groups
        if not group.suffix
        for traits in group.required
    ]


def _pairs(snapshot: Snapshot, rows: Rows, served: Ties) -> tuple[Rows, Rows]:
    """(anchor, row) pairs in the order of anchors; a tree's own rows come before the sharing ones."""
    owners = snapshot.root[rows]
    if len(served.rows):
        owners = np.concatenate([owners, served.anchors])
        rows = np.concatenate([rows, served.rows])
        order = np.argsort(owners, kind="stable")
        owners, rows = owners[order], rows[order]
    return owners, rows


def _limits(snapshot: Snapshot, slots: tuple[Slot, ...]) -> dict[int, Ints]:
    limits = {}
    for class_id in contested(slots):
        limit = np.zeros(len(snapshot), np.int64)
        column = snapshot.columns.get(class_id)
        if column is not None:
            limit[column.rows] = np.minimum(column.room, column.high)
        limits[class_id] = limit
    return limits


def contested(slots: tuple[Slot, ...]) -> dict[int, int]:
    """Total per class, for the classes that several slots ask for."""
    times: dict[int, list[int]] = {}
    for slot in slots:
        for class_id, amount in slot.needs:
            times.setdefault(class_id, []).append(amount)
    return {class_id: sum(amounts) for class_id, amounts in times.items() if len(amounts) > 1}


def _allowed(snapshot: Snapshot, group: Group, shared: Rows) -> Mask | None:
    """The rows that meet a group's conditions, but for traits that its providers have to have together.

    Membership through the root does not count for a sharing provider: it must be (or not be) a member itself.
    """
    mask = select.allowed_rows(snapshot, group, collective=not group.suffix)
    if not len(shared) or snapshot.flat or group.suffix or mask is None or not (group.member_of or group.not_member_of):
        return mask
    own = np.ones(len(snapshot), np.bool_)
    for aggregates in group.member_of:
        own &= select.members(snapshot, aggregates, through_root=False)
    if group.not_member_of:
        own &= ~select.members(snapshot, group.not_member_of, through_root=False)
    rest = select.allowed_rows(snapshot, _without_aggregates(group), collective=True)
    mask[shared] = own[shared] if rest is None else (own & rest)[shared]
    return mask


def _without_aggregates(group: Group) -> Group:
    return Group(group.suffix, group.resources, group.required, group.forbidden, in_tree=group.in_tree)
