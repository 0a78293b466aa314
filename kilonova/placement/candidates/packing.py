"""Placing the slots of one request within one anchor's scope: a depth-first search that is lazy, pruned and bounded.

Slots with fewest options come first. What slots take together is carried along, so a partial choice that exceeds a
provider is never extended; a state that led to nothing is remembered, which makes permutations of equal groups
collapse. It keeps its own stack: a request may have more slots than Python has frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kilonova.placement.candidates.problem import Problem
from kilonova.placement.candidates.subtrees import Subtrees

Packing = tuple[int, ...]
"""The row of each slot, in the order of the request's slots."""

_PATIENCE = 128
"""Steps, and some for each slot, after which a search without an answer lets others go on."""

_LIGHT = 16
"""How many things that are merely looked at weigh as much as a step."""


@dataclass(slots=True)
class Budget:
    """What a request may still do. steps: rows tried, and work of that weight. memo: items of states kept as dead."""

    left: int
    memo: int = 250_000


def packings(problem: Problem, tree: int, budget: Budget) -> Iterator[Packing | None]:
    """Every valid choice within the scope of one anchor (by number), until the budget is spent.

    None in between says that it is still searching.
    """
    order = sorted(range(len(problem.slots)), key=lambda n: int(problem.count[n][tree]))
    search = _Search(problem, tree, order, budget)
    if budget.left < 0 or search.hopeless():
        return iter(())
    return search.run()


class _Search:
    """The state of one anchor's search."""

    def __init__(self, problem: Problem, tree: int, order: list[int], budget: Budget) -> None:
        self._problem, self._order, self._budget = problem, order, budget
        self._rows = [problem.options(n, tree) for n in order]
        self._slots = [problem.slots[n] for n in order]
        budget.left -= sum(map(len, self._rows)) // _LIGHT
        # What a slot takes matters only where another slot asks for the same class.
        self._needs = [[need for need in slot.needs if need[0] in problem.limits] for slot in self._slots]
        self._apart = [problem.query.isolate and bool(slot.suffix) for slot in self._slots]
        self._used: dict[tuple[int, int], int] = {}
        self._taken: set[int] = set()
        self._chosen: list[int] = []
        self._in_tree: dict[int, int] = {}  # before nesting: the row taken of each tree, by root
        self._traits = [0]  # by depth: which of the trait sets asked of all unsuffixed slots are met
        self._dead: set[object] = set()
        self._subtrees = Subtrees(problem, [slot.suffix for slot in self._slots], self._rows)
        self._weights = [1 + self._subtrees.lists(n) // _LIGHT for n in range(len(order))]
        budget.left -= sum(self._weights)
        self._last_of = {class_id: n for n, needs in enumerate(self._needs) for class_id, _ in needs}
        self._last_apart = max((n for n, apart in enumerate(self._apart) if apart), default=-1)
        self._last_bare = max((n for n, slot in enumerate(self._slots) if not slot.suffix), default=-1)

    def hopeless(self) -> bool:
        """Whether sums alone rule the scope out: more isolated groups than rows, or more asked than there is."""
        apart = [rows for apart, rows in zip(self._apart, self._rows, strict=True) if apart]
        if apart and len(set().union(*apart)) < len(apart):
            return True
        if self._problem.collective:
            reach = {row for slot, rows in zip(self._slots, self._rows, strict=True) if not slot.suffix for row in rows}
            met = 0
            for row in reach:
                met |= self._held(row)
            if met != self._all_traits():
                return True
        asked: dict[int, list[int]] = {}
        where: dict[int, set[int]] = {}
        for needs, rows in zip(self._needs, self._rows, strict=True):
            for class_id, amount in needs:
                asked.setdefault(class_id, []).append(amount)
                where.setdefault(class_id, set()).update(rows)
        return any(self._too_much(class_id, amounts, where[class_id]) for class_id, amounts in asked.items())

    def _too_much(self, class_id: int, amounts: list[int], rows: set[int]) -> bool:
        """A row takes no more than its room and its max_unit in all, and only whole amounts."""
        limit, least = self._problem.limits[class_id], min(amounts)
        limits = [int(limit[row]) for row in rows]
        return sum(limits) < sum(amounts) or sum(most // least for most in limits) < len(amounts)

    def run(self) -> Iterator[Packing | None]:
        """Every way to place the slots."""
        budget, end = self._budget, len(self._slots)
        patience = _PATIENCE + 4 * end
        place, found = [0] * end, [False] * end
        depth, idle = 0, 0
        while depth >= 0:
            if place[depth] == len(self._rows[depth]):
                if not found[depth]:
                    self._remember(depth)
                depth -= 1
                if depth >= 0:
                    found[depth] = found[depth] or found[depth + 1]
                    self._unplace(depth)
                continue
            row = self._rows[depth][place[depth]]
            place[depth] += 1
            budget.left -= self._weights[depth]
            if budget.left < 0:
                return
            idle += 1
            if idle == patience:
                idle = 0
                yield None
            if not self._place(depth, row):
                continue
            budget.left -= depth // _LIGHT
            if depth + 1 == end:
                found[depth], idle = True, 0
                yield self._packing()
                self._unplace(depth)
                continue
            if self._dead and self._state(depth + 1) in self._dead:
                self._unplace(depth)
                continue
            depth += 1
            place[depth], found[depth] = 0, False

    def _packing(self) -> Packing:
        packing = [0] * len(self._order)
        for n, row in zip(self._order, self._chosen, strict=True):
            packing[n] = row
        return tuple(packing)

    def _state(self, depth: int) -> tuple[object, ...]:
        """All of the past that matters for what is still to be placed."""
        used = frozenset((key, much) for key, much in self._used.items() if much and self._last_of[key[1]] >= depth)
        taken = frozenset(self._taken) if self._last_apart >= depth else None
        traits = self._traits[-1] if self._last_bare >= depth else None
        trees = None if self._problem.query.nested else frozenset(self._in_tree.values())
        return depth, used, taken, traits, trees, self._subtrees.state(depth)

    def _remember(self, depth: int) -> None:
        """What is placed before this depth leads to nothing."""
        state = self._state(depth)
        self._budget.memo -= sum(len(part) for part in state if isinstance(part, frozenset | tuple)) + 1
        if self._budget.memo >= 0:
            self._dead.add(state)

    # -- one slot on one row --------------------------------------------------------------------------------------

    def _place(self, depth: int, row: int) -> bool:
        """Put the slot of a depth on a row, if it goes with those placed before; nothing is changed when not."""
        if self._apart[depth] and row in self._taken:
            return False
        if not self._problem.query.nested and not self._alone_in_tree(row):
            return False
        needs, used, limits = self._needs[depth], self._used, self._problem.limits
        for class_id, amount in needs:
            if used.get((row, class_id), 0) + amount > limits[class_id][row]:
                return False
        traits = self._traits[-1]
        if self._problem.collective and not self._slots[depth].suffix:
            traits |= self._held(row)
            if depth == self._last_bare and traits != self._all_traits():
                return False
        if not self._subtrees.place(depth, row):
            return False
        for class_id, amount in needs:
            used[row, class_id] = used.get((row, class_id), 0) + amount
        if self._apart[depth]:
            self._taken.add(row)
        if not self._problem.query.nested:
            self._in_tree.setdefault(self._root(row), row)
        self._traits.append(traits)
        self._chosen.append(row)
        return True

    def _unplace(self, depth: int) -> None:
        row = self._chosen.pop()
        self._traits.pop()
        for class_id, amount in self._needs[depth]:
            self._used[row, class_id] -= amount
        if self._apart[depth]:
            self._taken.discard(row)
        if not self._problem.query.nested and row not in self._chosen:
            del self._in_tree[self._root(row)]
        self._subtrees.unplace(depth)

    def _alone_in_tree(self, row: int) -> bool:
        """Whether no other provider of the same tree is in the answer already."""
        return self._in_tree.get(self._root(row), row) == row

    def _root(self, row: int) -> int:
        return int(self._problem.snapshot.root[row])

    def _all_traits(self) -> int:
        return (1 << len(self._problem.collective)) - 1

    def _held(self, row: int) -> int:
        """Which of the trait sets asked of the unsuffixed group a row meets, as bits."""
        known = self._problem.held
        if row not in known:
            self._budget.left -= len(self._problem.collective) // _LIGHT
            words = self._problem.snapshot.words
            known[row] = sum(
                1 << n
                for n, masks in enumerate(self._problem.collective)
                if any(int(words[word][row]) & mask for word, mask in masks)
            )
        return known[row]
