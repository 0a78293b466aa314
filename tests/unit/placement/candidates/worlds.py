"""Random small worlds and requests, tuned so that a good part of the requests has answers."""

from __future__ import annotations

from datetime import datetime

from hypothesis import strategies as st

from kilonova.placement.candidates.request import Group, Query
from kilonova.placement.candidates.snapshot import Facts

SHARES = 9
CLASSES = (1, 2, 3)
TRAITS = (1, 2, 3)
AGGREGATES = ("a", "b", "c")
NOW = datetime(2026, 1, 1)

numbers = st.tuples(
    st.integers(2, 9), st.integers(0, 2), st.sampled_from((1, 1, 1, 2)), st.sampled_from((99, 99, 3)),
    st.sampled_from((1, 1, 1, 1, 2)),
)  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn, *, flat: bool = False, size: int = 7, sharing: bool = True) -> list[Facts]:
    count = draw(st.integers(1, size))
    found: list[Facts] = []
    for id_ in range(1, count + 1):
        parent = None if flat else draw(st.sampled_from([None, *[one.id for one in found][-3:]]))
        root = id_ if parent is None else next(one.root_id for one in found if one.id == parent)
        traits = draw(st.sets(st.sampled_from(TRAITS)))
        if sharing and draw(st.integers(0, 4)) == 0:
            traits.add(SHARES)
        found.append(Facts(
            id_, f"u{id_}", f"n{id_}", draw(st.integers(0, 5)), parent, root, NOW,
            draw(st.dictionaries(st.sampled_from(CLASSES), numbers, min_size=draw(st.integers(0, 2)))),
            tuple(sorted(traits)), tuple(sorted(draw(st.sets(st.sampled_from(AGGREGATES), max_size=2)))),
        ))  # fmt: skip
    return found


def _rare(draw: st.DrawFn, strategy: st.SearchStrategy, nothing: object, odds: int = 3) -> object:  # type: ignore[type-arg]
    return draw(strategy) if draw(st.integers(0, odds)) == odds else nothing


@st.composite
def groups(draw: st.DrawFn, suffix: str, *, empty: bool = False) -> Group:
    any_of = st.frozensets(st.sampled_from(TRAITS), min_size=1, max_size=2)
    aggregates = st.frozensets(st.sampled_from((*AGGREGATES, "nowhere")), min_size=1, max_size=2)
    needs = () if empty else tuple(sorted(draw(
        st.dictionaries(st.sampled_from(CLASSES), st.sampled_from((1, 1, 2, 2, 3, 4)), min_size=1, max_size=2)
    ).items()))  # fmt: skip
    return Group(
        suffix,
        needs,
        _rare(draw, st.lists(any_of, min_size=1, max_size=2).map(tuple), (), 4),  # type: ignore[arg-type]
        _rare(draw, st.frozensets(st.sampled_from(TRAITS), min_size=1, max_size=2), frozenset(), 4),  # type: ignore[arg-type]
        _rare(draw, st.lists(aggregates, min_size=1, max_size=2).map(tuple), (), 4),  # type: ignore[arg-type]
        _rare(draw, aggregates, frozenset(), 5),  # type: ignore[arg-type]
        _rare(draw, st.sampled_from(["u1", "u2", "u3", "u4", "nobody"]), None, 7),  # type: ignore[arg-type]
    )


@st.composite
def queries(draw: st.DrawFn, *, nested: bool = True) -> Query:
    found = [draw(groups(""))] if draw(st.booleans()) else []
    count = draw(st.integers(0 if found else 1, 3))
    found += [draw(groups(f"_{n}")) for n in range(count)]
    placing = draw(st.sampled_from((0, 0, 0, 1, 2))) if nested else 0
    found += [draw(groups(f"_r{n}", empty=True)) for n in range(placing)]
    suffixes = [group.suffix for group in found if group.suffix]
    some = st.frozensets(st.sampled_from(suffixes), min_size=1) if suffixes else st.nothing()
    lists = _rare(draw, st.lists(some, min_size=1, max_size=2).map(tuple), (), 2) if suffixes and nested else ()
    return Query(
        tuple(found),
        isolate=draw(st.booleans()),
        same_subtree=lists,  # type: ignore[arg-type]
        root_required=_rare(draw, st.frozensets(st.sampled_from(TRAITS), max_size=1), frozenset(), 6),  # type: ignore[arg-type]
        root_forbidden=_rare(draw, st.frozensets(st.sampled_from(TRAITS), max_size=1), frozenset(), 6),  # type: ignore[arg-type]
        nested=nested,
        breadth=draw(st.booleans()),
    )
