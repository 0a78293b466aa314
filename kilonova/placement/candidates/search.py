"""Candidates: everything on one provider by vector operations, small scopes by one join, large ones by a search.

Step and minimum are judged per slot, room and maximum on the sums per provider and class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from kilonova.placement.candidates import join, select
from kilonova.placement.candidates.packing import Budget, Packing, packings
from kilonova.placement.candidates.problem import Problem, Ties, contested, lay_out, ties
from kilonova.placement.candidates.request import Answers, Query, Slot, slots_of
from kilonova.placement.candidates.snapshot import Ints, Mask, Rows, Snapshot

Stream = Iterator[Packing | None]
"""What `packings` answers."""

_PLACES_A_STEP = 16

MOST_PLACES = 500_000
"""The most (answer, slot) pairs of an answer: it is written and read as text."""


def find(snapshot: Snapshot, query: Query, *, sharing: int | None = None) -> Answers:
    """All candidates for a request, or `limit` of them.

    sharing: the id of the trait by which a provider shares its inventory; None when it is not known yet. The order
    is that of the snapshot's rows; with a limit and `breadth` one answer is taken of each tree in turn.
    """
    slots = slots_of(query)
    if not slots:
        return Answers(slots)
    most = max(1, MOST_PLACES // len(slots))
    capped = query.limit is None or query.limit > most
    answers = _found(snapshot, query, slots, sharing, most if query.limit is None else min(query.limit, most))
    return replace(answers, cut=True) if capped and len(answers.rows) == most else answers


def _found(snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], sharing: int | None, most: int) -> Answers:
    shared = _sharing_rows(snapshot, sharing)
    if (snapshot.flat or not query.nested) and not len(shared):  # without nesting and sharing one provider takes all
        rows = _on_one_row(snapshot, query, slots, None)[:most]
        return Answers(slots, [(row,) * len(slots) for row in rows.tolist()])
    return _in_trees(snapshot, query, slots, shared, most)


def _sharing_rows(snapshot: Snapshot, sharing: int | None) -> Rows:
    if sharing is None or sharing not in snapshot.trait_bits:
        return np.zeros(0, np.int32)
    return np.nonzero(select.having(snapshot, (sharing,)))[0].astype(np.int32)


# -- everything on one provider -----------------------------------------------------------------------------------


def _on_one_row(snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], only: Mask | None) -> Rows:
    """The rows (of `only`, when given) that take every slot at once."""
    if query.isolate and sum(1 for slot in slots if slot.suffix) > 1:
        return np.zeros(0, np.int32)
    allowed = only
    masks = (select.allowed_rows(snapshot, group, collective=False) for group in query.groups)
    for mask in chain((select.allowed_roots(snapshot, query),), masks):
        if mask is not None:
            allowed = mask if allowed is None else allowed & mask
    rows: Rows | None = None
    for slot in slots:
        fits = select.eligible(snapshot, slot, allowed)
        rows = fits if rows is None else rows[np.isin(rows, fits, assume_unique=True)]
    assert rows is not None
    for class_id, total in contested(slots).items():
        if not len(rows):
            break
        rows = rows[_takes_sum(snapshot, rows, class_id, total)]
    return rows


def _takes_sum(snapshot: Snapshot, rows: Rows, class_id: int, total: int) -> Mask:
    column = snapshot.columns[class_id]
    at = np.searchsorted(column.rows, rows)
    return np.asarray((column.room[at] >= total) & (column.high[at] >= total))


# -- over several providers -----------------------------------------------------------------------------------------


def _in_trees(snapshot: Snapshot, query: Query, slots: tuple[Slot, ...], shared: Rows, most: int) -> Answers:
    tied = ties(snapshot, shared)
    alone = _alone(snapshot, shared, tied)
    found = [(row,) * len(slots) for row in _on_one_row(snapshot, query, slots, alone)[:most].tolist()]
    if len(found) >= most:
        return Answers(slots, found)
    problem = lay_out(snapshot, query, slots, shared, tied, ~alone)
    budget = Budget(query.steps)
    seen: set[Packing] = set()  # only answers made of sharing providers alone arise through several anchors
    shared_set = set(shared.tolist())
    for rows in _packings(problem, budget, most - len(found)):
        if shared_set and shared_set.issuperset(rows):
            if rows in seen:
                continue
            seen.add(rows)
        found.append(rows)
        if len(found) >= most:
            return Answers(slots, found)
    return Answers(slots, found, problem.cut or budget.left < 0)


def _alone(snapshot: Snapshot, shared: Rows, tied: Ties) -> Mask:
    """The rows whose scope is nothing but themselves."""
    alone: Mask = np.asarray(snapshot.alive & (snapshot.size == 1) & (snapshot.parent < 0))
    alone[shared] = False
    alone[tied.anchors] = False
    return alone


def _packings(problem: Problem, budget: Budget, most: int) -> Iterator[Packing]:
    """Every answer of every scope; with a limit and `breadth` one of each scope in turn, until `most` differ."""
    suits = join.suits(problem)
    small = np.nonzero(suits)[0]
    streams = _streams(problem, np.nonzero(~suits)[0], budget)
    if problem.query.limit is not None and problem.query.breadth:
        yield from _in_turn(_rounds(problem, small, budget, most), streams)
        return
    for _, table in _tables(problem, small, budget):
        yield from map(tuple, table.tolist())
    yield from _one_by_one(streams)


def _streams(problem: Problem, trees: Ints, budget: Budget) -> Iterator[Stream]:
    """A search of each scope, while there is work to be spent on it."""
    for tree in trees.tolist():
        if budget.left < 0:
            return
        yield packings(problem, tree, budget)


def _tables(problem: Problem, small: Ints, budget: Budget) -> Iterator[tuple[Ints, Rows]]:
    """`join.chunks` within the bound of work: a place in a table is filled far faster than a step is taken."""
    for scope, table in join.chunks(problem, small):
        budget.left -= table.size // _PLACES_A_STEP
        yield scope, table
        if budget.left < 0:
            return


def _rounds(problem: Problem, small: Ints, budget: Budget, most: int) -> Iterator[Rows]:
    """The answers of the small scopes by rank: first the first of each scope, then the second of each, and so on.

    Once there are `most` different first ones, what comes after them is not looked at.
    """
    scopes: list[Ints] = []
    tables: list[Rows] = []
    firsts: set[Packing] = set()
    for scope, table in _tables(problem, small, budget):
        scopes.append(scope)
        tables.append(table)
        firsts.update(map(tuple, table[np.unique(scope, return_index=True)[1]].tolist()))
        if len(firsts) >= most:
            break
    if not scopes:
        return
    scope, table = np.concatenate(scopes), np.concatenate(tables)
    rank = np.arange(len(scope)) - np.searchsorted(scope, scope)
    order = np.argsort(rank, kind="stable")
    start = 0
    for end in np.cumsum(np.bincount(rank)).tolist():
        yield table[order[start:end]]
        start = end


def _in_turn(rounds: Iterator[Rows], streams: Iterator[Stream]) -> Iterator[Packing]:
    """Round after round: the ready answers of that rank, then one of each stream, opened only when reached.

    A stream that finds nothing for long gives its turn away too.
    """
    ready: Rows | None = next(rounds, None)
    opened: list[Stream] = []
    turn: Iterable[Stream] = streams
    while True:
        if ready is not None:
            yield from map(tuple, ready.tolist())
        still: list[Stream] = []
        for stream in turn:
            for item in stream:
                still.append(stream)
                if item is not None:
                    yield item
                break
        opened, ready = still, next(rounds, None)
        turn = opened
        if not opened and ready is None:
            return


def _one_by_one(streams: Iterator[Stream]) -> Iterator[Packing]:
    """Each stream to its end before the next; one that finds nothing for long waits until the others are through."""
    turn: Iterable[Stream] = streams
    while True:
        waiting: list[Stream] = []
        for stream in turn:
            for item in stream:
                if item is None:
                    waiting.append(stream)
                    break
                yield item
        if not waiting:
            return
        turn = waiting
