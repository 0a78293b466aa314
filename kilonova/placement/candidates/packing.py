"""Placing the slots of one request within one anchor's scope: a depth-first search that is lazy, pruned and bounded.

Slots with fewest options come first. Use is carried per (row, class), so a partial choice that exceeds a provider is
never extended; a state that led to nothing is remembered, which makes permutations of equal groups collapse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kilonova.placement.candidates.arrange import word_masks
from kilonova.placement.candidates.problem import Problem
from kilonova.placement.candidates.request import Slot

Packing = tuple[int, ...]
"""The row of each slot, in the order of the request's slots."""

_Use = dict[tuple[int, int], int]


@dataclass(slots=True)
class Budget:
    """Steps that a request may still take."""

    left: int


def packings(problem: Problem, tree: int, budget: Budget) -> Iterator[Packing]:
    """Every valid choice within the scope of one anchor (by number), until the budget is spent."""
    order = sorted(range(len(problem.slots)), key=lambda n: int(problem.count[n][tree]))
    search = _Search(problem, tree, order, budget)
    if search.hopeless():
        return iter(())
    return search.run(0)


class _Search:
    """The state of one anchor's search."""

    def __init__(self, problem: Problem, tree: int, order: list[int], budget: Budget) -> None:
        self._problem, self._order, self._budget = problem, order, budget
        self._rows = [problem.options(n, tree) for n in order]
        self._slots = [problem.slots[n] for n in order]
        self._limits = problem.limits
        self._used: _Use = {}
        self._taken: list[int] = []
        self._chosen: list[int] = []
        self._dead: set[object] = set()
        self._collective = [n for n, slot in enumerate(self._slots) if not slot.suffix]
        self._traits = [word_masks(problem.snapshot.trait_bits, _known(problem, traits))
                        for group in problem.query.groups if not group.suffix
                        for traits in group.required]  # fmt: skip
        self._subtrees = self._subtree_slots()
        self._ends: dict[int, list[list[int]]] = {}
        for places in self._subtrees:
            self._ends.setdefault(max(places), []).append(places)
        self._watched = sorted({n for places in self._subtrees for n in places})

    def _subtree_slots(self) -> list[list[int]]:
        found = []
        for suffixes in self._problem.query.same_subtree:
            places = [n for n, slot in enumerate(self._slots) if slot.suffix in suffixes]
            if len(places) > 1:
                found.append(places)
        return found

    def hopeless(self) -> bool:
        """Whether sums alone rule the scope out: more isolated groups than rows, or more asked than there is."""
        if self._problem.query.isolate:
            apart = [rows for slot, rows in zip(self._slots, self._rows, strict=True) if slot.suffix]
            if len(set().union(*apart)) < len(apart):
                return True
        if self._traits:
            reach = {row for n in self._collective for row in self._rows[n]}
            if not all(any(self._has(row, masks) for row in reach) for masks in self._traits):
                return True
        asked: dict[int, int] = {}
        where: dict[int, set[int]] = {}
        for slot, rows in zip(self._slots, self._rows, strict=True):
            for class_id, amount in slot.needs:
                asked[class_id] = asked.get(class_id, 0) + amount
                where.setdefault(class_id, set()).update(rows)
        # A row takes no more than its room and its max_unit in all, so the limits bound what can be placed.
        return any(sum(int(self._limits[id_][row]) for row in where[id_]) < total for id_, total in asked.items())

    def run(self, depth: int) -> Iterator[Packing]:
        """Every way to place the slots from `depth` on, given what is placed already."""
        if depth == len(self._slots):
            yield self._packing()
            return
        state = self._state(depth)
        if state in self._dead:
            return
        found = False
        slot = self._slots[depth]
        for row in self._rows[depth]:
            self._budget.left -= 1
            if self._budget.left < 0:
                return
            if not self._place(slot, row):
                continue
            self._chosen.append(row)
            if self._fits_together(depth):
                for packing in self.run(depth + 1):
                    found = True
                    yield packing
            self._chosen.pop()
            self._unplace(slot, row)
        if not found and self._budget.left >= 0:
            self._dead.add(state)

    def _packing(self) -> Packing:
        packing = [0] * len(self._order)
        for n, row in zip(self._order, self._chosen, strict=True):
            packing[n] = row
        return tuple(packing)

    def _state(self, depth: int) -> object:
        """All of the past that matters for what is still to be placed."""
        watched = tuple(self._chosen[n] for n in self._watched if n < depth)
        traits = frozenset(self._chosen[n] for n in self._collective if n < depth) if self._traits else None
        taken = frozenset(self._taken) if self._problem.query.isolate else None
        rows = None if self._problem.query.nested else frozenset(self._chosen)
        return depth, frozenset(item for item in self._used.items() if item[1]), taken, watched, traits, rows

    def _beside(self, row: int) -> bool:
        """Whether another provider of the same tree is in the answer already."""
        root = self._problem.snapshot.root
        return any(other != row and root[other] == root[row] for other in self._chosen)

    def _place(self, slot: Slot, row: int) -> bool:
        if not self._problem.query.nested and self._beside(row):
            return False
        if self._problem.query.isolate and slot.suffix:
            if row in self._taken:
                return False
            self._taken.append(row)
        for n, (class_id, amount) in enumerate(slot.needs):
            key = (row, class_id)
            used = self._used.get(key, 0) + amount
            if used > self._limits[class_id][row]:
                for other, less in slot.needs[:n]:
                    self._used[row, other] -= less
                if self._problem.query.isolate and slot.suffix:
                    self._taken.pop()
                return False
            self._used[key] = used
        return True

    def _unplace(self, slot: Slot, row: int) -> None:
        for class_id, amount in slot.needs:
            self._used[row, class_id] -= amount
        if self._problem.query.isolate and slot.suffix:
            self._taken.pop()

    def _fits_together(self, depth: int) -> bool:
        """same_subtree and collective traits, as soon as the last slot they speak of is placed."""
        for places in self._ends.get(depth, ()):
            rows = [self._chosen[n] for n in places]
            top, last = min(rows), max(rows)
            if last >= top + int(self._problem.snapshot.size[top]):
                return False
        if self._traits and depth == self._collective[-1]:
            rows = [self._chosen[n] for n in self._collective]
            return all(any(self._has(row, masks) for row in rows) for masks in self._traits)
        return True

    def _has(self, row: int, masks: list[tuple[int, int]]) -> bool:
        words = self._problem.snapshot.words
        return any(int(words[word][row]) & mask for word, mask in masks)


def _known(problem: Problem, traits: frozenset[int]) -> list[int]:
    return [trait for trait in traits if trait in problem.snapshot.trait_bits]
