"""Candidates: everything on one provider by vector operations, the rest by a bounded search tree by tree.

The scope of an answer is one tree (its anchor) and the sharing providers tied to it: those in an aggregate of which
any provider of the tree is a member. Step and minimum are judged per slot, room and maximum on the sums per provider
and class.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kilonova.placement.candidates import select
from kilonova.placement.candidates.packing import Budget, Packing, Problem, packings
from kilonova.placement.candidates.request import Answers, Group, Query, Slot, slots_of
from kilonova.placement.candidates.snapshot import Mask, Rows, Snapshot


def find(snapshot: Snapshot, query: Query, *, sharing: int | None = None) -> Answers:
    """All candidates for a request, or `limit` of them.

    sharing: the id of the trait by which a provider shares its inventory; None when it is not known yet. The order
    is that of the snapshot's rows; with a limit one answer is taken of each tree in turn.
    """
    slots = slots_of(query)
    if not slots:
        return Answers(slots)
    shared = _sharing_rows(snapshot, sharing)
    if (snapshot.flat or not query.nested) and not len(shared):  # without nesting and sharing one provider takes all
        rows = _on_one_row(snapshot, query, slots, None)
        if query.limit is not None:
            rows = rows[: query.limit]
        return Answers(slots, [(row,) * len(slots) for row in rows.tolist()])
    return _in_trees(snapshot, query, slots, shared)


def _sharing_rows(snapshot: Snapshot, sharing: int | None) -> Rows:
    if sharing is None or sharing not in snapshot.trait_bits:
        return np.zeros(0, np.int32)
    return np.nonzero(select.having(snapshot, (sharing,)))[0].astype(np.int32)


# -- everything on one provider -----------------------------------------------------------------------------------


def _on_one_row(snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], only: Mask | None) -> Rows:
    """The rows (of `only`, when given) that take every slot at once."""
    if query.isolate and sum(1 for slot in slots if slot.suffix) > 1:
        return np.zeros(0, np.int32)
    masks = [select.allowed_rows(snapshot, group, collective=False) for group in query.groups]
    masks += [select.allowed_roots(snapshot, query), only]
    allowed: Mask | None = None
    for mask in masks:
        if mask is not None:
            allowed = mask if allowed is None else allowed & mask
    rows: Rows | None = None
    for slot in slots:
        fits = select.eligible(snapshot, slot, allowed)
        rows = fits if rows is None else rows[np.isin(rows, fits, assume_unique=True)]
    assert rows is not None
    for class_id, total in _sums(slots).items():
        if not len(rows):
            break
        rows = rows[_takes_sum(snapshot, rows, class_id, total)]
    return rows


def _sums(slots: tuple[Slot, ...]) -> dict[int, int]:
    """Total per class, for the classes that several slots ask for."""
    times: dict[int, list[int]] = {}
    for slot in slots:
        for class_id, amount in slot.needs:
            times.setdefault(class_id, []).append(amount)
    return {class_id: sum(amounts) for class_id, amounts in times.items() if len(amounts) > 1}


def _takes_sum(snapshot: Snapshot, rows: Rows, class_id: int, total: int) -> Mask:
    column = snapshot.columns[class_id]
    at = np.searchsorted(column.rows, rows)
    return np.asarray((column.room[at] >= total) & (column.high[at] >= total))


# -- over several providers -----------------------------------------------------------------------------------------


def _in_trees(snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], shared: Rows) -> Answers:
    tied = _ties(snapshot, shared)
    alone = _alone(snapshot, shared, tied)
    singles = _on_one_row(snapshot, query, slots, alone).tolist()
    problem, anchors = _problem(snapshot, query, slots, shared, tied, ~alone)
    budget = Budget(query.steps)
    seen: set[Packing] = set()  # only answers made of sharing providers alone arise through several anchors
    shared_set = set(shared.tolist())
    streams = (packings(problem, anchor, budget) for anchor in anchors)
    found = [(row,) * len(slots) for row in singles[: query.limit]]
    for rows in _in_turn(streams, breadth=query.limit is not None):
        if query.limit is not None and len(found) >= query.limit:
            break
        if shared_set and shared_set.issuperset(rows):
            if rows in seen:
                continue
            seen.add(rows)
        found.append(rows)
    return Answers(slots, found, budget.left < 0)


def _alone(snapshot: Snapshot, shared: Rows, tied: dict[int, list[int]]) -> Mask:
    """The rows whose scope is nothing but themselves."""
    alone: Mask = np.asarray(snapshot.alive & (snapshot.size == 1) & (snapshot.parent < 0))
    alone[shared] = False
    for anchors in tied.values():
        alone[anchors] = False
    return alone


def _in_turn(streams: Iterator[Iterator[Packing]], *, breadth: bool) -> Iterator[Packing]:
    """One item of each stream in turn, streams being opened only when reached; or each stream to its end."""
    if not breadth:
        for stream in streams:
            yield from stream
        return
    opened: list[Iterator[Packing]] = []
    for stream in streams:
        first = next(stream, None)
        if first is not None:
            yield first
            opened.append(stream)
    while opened:
        still: list[Iterator[Packing]] = []
        for stream in opened:
            item = next(stream, None)
            if item is not None:
                yield item
                still.append(stream)
        opened = still


def _problem(
    snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], shared: Rows, tied: dict[int, list[int]], among: Mask
) -> tuple[Problem, list[int]]:
    """Rows per slot, and the anchors (root rows) in whose scope every slot has one."""
    roots = among & (snapshot.root == np.arange(len(snapshot)))
    good = select.allowed_roots(snapshot, query)
    if good is not None:
        roots &= good
    masks = [select.allowed_rows(snapshot, group, collective=not group.suffix) for group in query.groups]
    _sharers_by_themselves(snapshot, query, shared, masks)
    options: list[dict[int, list[int]]] = []
    for slot in slots:
        rows = select.eligible(snapshot, slot, masks[slot.group])
        by_root = _by_root(snapshot, rows[among[rows]], tied)
        options.append(by_root)
        there = np.zeros(len(snapshot), np.bool_)
        there[list(by_root)] = True
        roots &= there
    return Problem(snapshot, query, slots, options), np.nonzero(roots)[0].tolist()


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


def _ties(snapshot: Snapshot, shared: Rows) -> dict[int, list[int]]:
    """The anchors that each sharing row serves besides its own."""
    ties: dict[int, list[int]] = {}
    for row in shared.tolist():
        shown = snapshot.shown[row]
        if shown is None:
            continue
        found = [snapshot.aggregates[aggregate] for aggregate in shown.aggregates]
        if found:
            rows = np.concatenate(found)
            anchors = np.unique(snapshot.root[rows])
            ties[row] = anchors[anchors != snapshot.root[row]].tolist()
    return ties


def _by_root(snapshot: Snapshot, rows: Rows, tied: dict[int, list[int]]) -> dict[int, list[int]]:
    """Rows by anchor: those of the tree, then the sharing ones tied to it."""
    found: dict[int, list[int]] = {}
    for row, anchor in zip(rows.tolist(), snapshot.root[rows].tolist(), strict=True):
        found.setdefault(anchor, []).append(row)
    if tied:
        for row in rows.tolist():
            for anchor in tied.get(row, ()):
                found.setdefault(anchor, []).append(row)
    return found
