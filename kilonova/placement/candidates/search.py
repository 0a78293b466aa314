"""Candidates: everything on one provider by vector operations, small scopes by one join, large ones by a search.

Step and minimum are judged per slot, room and maximum on the sums per provider and class.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kilonova.placement.candidates import join, select
from kilonova.placement.candidates.packing import Budget, Packing, packings
from kilonova.placement.candidates.problem import Problem, Ties, lay_out, ties
from kilonova.placement.candidates.request import Answers, Query, Slot, slots_of
from kilonova.placement.candidates.snapshot import Ints, Mask, Rows, Snapshot


def find(snapshot: Snapshot, query: Query, *, sharing: int | None = None) -> Answers:
    """All candidates for a request, or `limit` of them.

    sharing: the id of the trait by which a provider shares its inventory; None when it is not known yet. The order
    is that of the snapshot's rows; with a limit and `breadth` one answer is taken of each tree in turn.
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
    tied = ties(snapshot, shared)
    alone = _alone(snapshot, shared, tied)
    found = [(row,) * len(slots) for row in _on_one_row(snapshot, query, slots, alone)[: query.limit].tolist()]
    if query.limit is not None and len(found) >= query.limit:
        return Answers(slots, found)
    problem = lay_out(snapshot, query, slots, shared, tied, ~alone)
    budget = Budget(query.steps)
    seen: set[Packing] = set()  # only answers made of sharing providers alone arise through several anchors
    shared_set = set(shared.tolist())
    for rows in _packings(problem, budget, None if query.limit is None else query.limit - len(found), not shared_set):
        if shared_set and shared_set.issuperset(rows):
            if rows in seen:
                continue
            seen.add(rows)
        found.append(rows)
        if query.limit is not None and len(found) >= query.limit:
            break
    return Answers(slots, found, budget.left < 0)


def _alone(snapshot: Snapshot, shared: Rows, tied: Ties) -> Mask:
    """The rows whose scope is nothing but themselves."""
    alone: Mask = np.asarray(snapshot.alive & (snapshot.size == 1) & (snapshot.parent < 0))
    alone[shared] = False
    alone[tied.anchors] = False
    return alone


def _packings(problem: Problem, budget: Budget, limit: int | None, distinct: bool) -> Iterator[Packing]:
    """Every answer of every scope; with a limit and `breadth` one of each scope in turn.

    distinct: no answer can come twice, so that more than `limit` are not worth making.
    """
    product = join.products(problem)
    small = np.nonzero(product <= join.SMALL)[0]
    streams = (packings(problem, tree, budget) for tree in np.nonzero(product > join.SMALL)[0].tolist())
    if limit is None or not problem.query.breadth:
        for _, table in join.chunks(problem, small):
            budget.left -= len(table)
            yield from map(tuple, table.tolist())
            if budget.left < 0:
                return
        for stream in streams:
            yield from stream
        return
    yield from _in_turn(_rounds(problem, small, limit if distinct else None), streams)


def _rounds(problem: Problem, small: Ints, limit: int | None) -> list[list[Packing]]:
    """The answers of the small scopes by rank: first the first of each scope, then the second of each, and so on."""
    scopes: list[Ints] = []
    tables: list[Rows] = []
    trees = 0
    for scope, table in join.chunks(problem, small):
        scopes.append(scope)
        tables.append(table)
        trees += len(np.unique(scope))
        if limit is not None and trees >= limit:
            break
    if not scopes:
        return []
    scope, table = np.concatenate(scopes), np.concatenate(tables)
    first = np.searchsorted(scope, scope)
    rank = np.arange(len(scope)) - first
    order = np.argsort(rank, kind="stable")[:limit]
    ends = np.cumsum(np.bincount(rank[order])).tolist() if len(order) else []
    ready: list[Packing] = list(map(tuple, table[order].tolist()))
    return [ready[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _in_turn(rounds: list[list[Packing]], streams: Iterator[Iterator[Packing]]) -> Iterator[Packing]:
    """Round after round: the ready answers of that rank, then one of each stream, opened only when reached."""
    opened: list[Iterator[Packing]] = []
    yield from rounds[0] if rounds else ()
    for stream in streams:
        first = next(stream, None)
        if first is not None:
            yield first
            opened.append(stream)
    turn = 1
    while opened or turn < len(rounds):
        yield from rounds[turn] if turn < len(rounds) else ()
        still: list[Iterator[Packing]] = []
        for stream in opened:
            item = next(stream, None)
            if item is not None:
                yield item
                still.append(stream)
        opened, turn = still, turn + 1
