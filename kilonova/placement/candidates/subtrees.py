"""same_subtree within a search: of the rows placed for each list only the first and the last matter.

Rows stand in pre-order, so the rows of a list are in one subtree with its top among them exactly when the last lies in
the slice of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.placement.candidates.problem import Problem


class Subtrees:
    """The lists of one search, whose slots are placed in the order of `suffixes`."""

    def __init__(self, problem: Problem, suffixes: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
        self._size, self._parent = problem.snapshot.size, problem.snapshot.parent
        self._lists: list[_List] = []
        self._at: dict[int, list[_List]] = {}
        if not problem.query.same_subtree:
            return
        by_suffix = {suffix: n for n, suffix in enumerate(suffixes) if suffix}
        tops = [[row for row in some if self._size[row] > 1] for some in rows]
        for named in problem.query.same_subtree:
            places = sorted(by_suffix[suffix] for suffix in named if suffix in by_suffix)
            if len(places) > 1:
                self._add(places, tops)

    def _add(self, places: list[int], tops: Sequence[Sequence[int]]) -> None:
        one = _List(places[-1])
        self._lists.append(one)
        later: set[int] = set()
        for n in reversed(places):
            one.tops[n] = frozenset(later)
            later.update(tops[n])
            self._at.setdefault(n, []).append(one)

    def lists(self, depth: int) -> int:
        """How many lists name the slot of a depth."""
        return len(self._at.get(depth, ()))

    def place(self, depth: int, row: int) -> bool:
        """Add the slot of a depth, unless nothing could be the top of one of its lists any more."""
        lists = self._at.get(depth)
        if lists is None:
            return True
        spans = []
        for one in lists:
            first, last = one.spans[-1] if one.spans else (row, row)
            first, last = min(first, row), max(last, row)
            if not self._has_top(first, last, one.tops[depth]):
                return False
            spans.append((first, last))
        for one, span in zip(lists, spans, strict=True):
            one.spans.append(span)
        return True

    def unplace(self, depth: int) -> None:
        """Take back what `place` added."""
        for one in self._at.get(depth, ()):
            one.spans.pop()

    def state(self, depth: int) -> tuple[tuple[int, int] | None, ...]:
        """What of the slots before `depth` matters for the rest."""
        return tuple(one.spans[-1] if one.spans and one.end >= depth else None for one in self._lists)

    def _has_top(self, first: int, last: int, tops: frozenset[int]) -> bool:
        """Whether the first row, or one of the rows that can still be chosen, is above (or the same as) all."""
        if last < first + self._size[first]:
            return True
        above = int(self._parent[first]) if tops else -1
        while above >= 0:
            if above in tops and last < above + self._size[above]:
                return True
            above = int(self._parent[above])
        return False


class _List:
    """One list. end: the depth of its last slot. tops: by depth, the rows with children that later slots may take.
    spans: first and last row, after each of its slots."""

    __slots__ = ("end", "spans", "tops")

    def __init__(self, end: int) -> None:
        self.end = end
        self.tops: dict[int, frozenset[int]] = {}
        self.spans: list[tuple[int, int]] = []
