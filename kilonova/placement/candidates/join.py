"""All answers of many small scopes at once: the product of their options, slot by slot, as one table.

For scopes whose product is small a search per scope would cost more than the product itself. What a slot makes
impossible is dropped before the next slot is joined.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kilonova.placement.candidates.problem import Problem
from kilonova.placement.candidates.snapshot import Ints, Mask, Rows

SMALL = 64
"""The largest product of a scope that is joined."""

MOST = 16
"""The most slots, subtree lists and trait sets of a request that is joined: all are compared row by row."""

_CHUNK_ROWS = 1 << 17


def suits(problem: Problem) -> Mask:
    """Which scopes are small enough to be joined."""
    query = problem.query
    if max(len(problem.slots), len(query.same_subtree), len(problem.collective)) > MOST:
        return np.zeros(len(problem.anchors), np.bool_)
    return np.asarray(products(problem) <= SMALL)


def products(problem: Problem) -> Ints:
    """How many ways there are to choose a row per slot, by scope; capped far above SMALL."""
    product = np.ones(len(problem.anchors), np.int64)
    for count in problem.count:
        product = np.minimum(product * count, 1 << 40)
    return product


def chunks(problem: Problem, trees: Ints) -> Iterator[tuple[Ints, Rows]]:
    """Tables of answers for the scopes `trees` (numbers of anchors), some scopes at a time.

    Each is (scope numbers ascending, rows by answer and slot).
    """
    sizes = np.cumsum(products(problem)[trees])
    start = 0
    while start < len(trees):
        before = int(sizes[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(sizes, before + _CHUNK_ROWS)))
        yield _join(problem, trees[start:end])
        start = end


def _join(problem: Problem, trees: Ints) -> tuple[Ints, Rows]:
    scope = trees
    chosen: list[Rows] = []
    for n in range(len(problem.slots)):
        count, start = problem.count[n][scope], problem.start[n][scope]
        parent = np.repeat(np.arange(len(scope)), count)
        offset = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
        rows = problem.rows[n][start[parent] + offset]
        chosen = [column[parent] for column in chosen]
        scope = scope[parent]
        fits = _fits(problem, n, chosen, rows)
        chosen.append(rows)
        if fits is not None:
            chosen = [column[fits] for column in chosen]
            scope = scope[fits]
    valid = _valid(problem, chosen)
    if valid is not None:
        chosen = [column[valid] for column in chosen]
        scope = scope[valid]
    return scope, np.stack(chosen, axis=1)


def _fits(problem: Problem, n: int, chosen: list[Rows], rows: Rows) -> Mask | None:
    """Whether slot `n` on these rows goes with the slots chosen before it; None when nothing could clash."""
    slot, fits = problem.slots[n], None
    for before in range(n):
        other = problem.slots[before]
        if problem.query.isolate and slot.suffix and other.suffix:
            fits = _and(fits, chosen[before] != rows)
        if not problem.query.nested:
            root = problem.snapshot.root
            fits = _and(fits, (chosen[before] == rows) | (root[chosen[before]] != root[rows]))
    for class_id, amount in slot.needs:
        total: Ints | None = None
        for before in range(n):
            also = dict(problem.slots[before].needs).get(class_id)
            if also is not None:
                total = (0 if total is None else total) + also * (chosen[before] == rows).astype(np.int64)
        if total is not None:
            fits = _and(fits, total + amount <= problem.limits[class_id][rows])
    return fits


def _valid(problem: Problem, chosen: list[Rows]) -> Mask | None:
    """same_subtree, and the traits that the unsuffixed group must have together."""
    valid: Mask | None = None
    snapshot = problem.snapshot
    for suffixes in problem.query.same_subtree:
        places = [n for n, slot in enumerate(problem.slots) if slot.suffix in suffixes]
        if len(places) > 1:
            together = np.stack([chosen[n] for n in places])
            top = together.min(axis=0)
            valid = _and(valid, together.max(axis=0) < top + snapshot.size[top])
    mine = [chosen[n] for n, slot in enumerate(problem.slots) if not slot.suffix]
    for masks in problem.collective:
        held = np.zeros(len(mine[0]), np.bool_)
        for word, bits in masks:
            for rows in mine:
                held |= (snapshot.words[word][rows] & np.uint64(bits)) != 0
        valid = _and(valid, held)
    return valid


def _and(mask: Mask | None, more: Mask) -> Mask:
    return more if mask is None else mask & more
