"""Making the next snapshot out of one: changed numbers in place, changed trees buried and appended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from kilonova.placement.candidates.snapshot import (
    Column,
    Facts,
    Ints,
    Rows,
    Shown,
    Snapshot,
    Words,
    empty,
    make_column,
)

Usage = tuple[int, Mapping[int, int]]
"""A provider's generation and its use by class id."""

_WORD = 64


def build(providers: Iterable[Facts]) -> Snapshot:
    """A snapshot of these providers; trees must be complete."""
    return change(empty(), list(providers), ())


def with_usage(snapshot: Snapshot, usages: Mapping[int, Usage]) -> Snapshot:
    """The same providers with other use, by provider id. Ids that are not there are passed over."""
    rows = [(snapshot.row_of[id_], usage) for id_, usage in usages.items() if id_ in snapshot.row_of]
    if not rows:
        return snapshot
    generation, fragments = snapshot.generation.copy(), snapshot.fragments.copy()
    by_class: dict[int, tuple[list[int], list[int]]] = {}
    for row, (number, used) in rows:
        generation[row] = number
        fragments[row] = None
        for class_id, amount in used.items():
            at, amounts = by_class.setdefault(class_id, ([], []))
            at.append(row)
            amounts.append(amount)
    columns = dict(snapshot.columns)
    for class_id, (at, amounts) in by_class.items():
        column = columns.get(class_id)
        if column is not None:
            columns[class_id] = _with_used(column, at, amounts)
    return replace(snapshot, generation=generation, columns=columns, fragments=fragments)


def _with_used(column: Column, rows: list[int], amounts: list[int]) -> Column:
    room = column.room.copy()
    places = np.searchsorted(column.rows, rows)
    for place, row, amount in zip(places.tolist(), rows, amounts, strict=True):
        if place < len(column.rows) and column.rows[place] == row:
            room[place] = column.capacity[place] - amount
    return replace(column, room=room)


def change(snapshot: Snapshot, trees: Sequence[Facts], gone: Iterable[int]) -> Snapshot:
    """Put `trees` (complete trees, in any order) in the place of what was known of their providers.

    `gone` are ids of providers that no longer exist. A provider that left a tree must come with the tree it left.
    """
    dead = {snapshot.row_of[id_] for id_ in gone if id_ in snapshot.row_of}
    edited: dict[int, Facts] = {}
    added: list[tuple[Facts, int, int]] = []  # facts, row of parent in the new tree (relative), subtree size
    bases: list[int] = []
    length = len(snapshot)
    for tree in _trees(trees):
        rows = [snapshot.row_of.get(facts.id) for facts, _, _ in tree]
        if _same_shape(snapshot, tree, rows):
            edited.update((row, facts) for row, (facts, _, _) in zip(rows, tree, strict=True) if row is not None)
            continue
        for row in rows:
            if row is not None:  # of a former root everything below goes, whatever is said of it elsewhere
                dead.update(range(row, row + int(snapshot.size[row])) if snapshot.parent[row] < 0 else (row,))
        bases.extend([length + len(added)] * len(tree))
        added.extend(tree)
    if dead or added:
        return _rearranged(snapshot, dead, edited, added, bases)
    return _edited(snapshot, edited) if edited else snapshot


def _edited(old: Snapshot, edited: dict[int, Facts]) -> Snapshot:
    """No provider came, went or moved."""
    by_id = {facts.id: facts for facts in edited.values()}
    shown, fragments, generation = old.shown.copy(), old.fragments.copy(), old.generation.copy()
    for row, facts in edited.items():
        shown[row], fragments[row], generation[row] = _show(facts, by_id), None, facts.generation
    dropped = np.fromiter(edited, np.int32, len(edited))
    before = [known for row in edited if (known := old.shown[row]) is not None]
    bits, words = old.trait_bits, old.words
    if any(known.traits != facts.traits for known, facts in zip(before, edited.values(), strict=True)):
        bits, words = _traits(old, dropped, edited, len(old))
    return replace(
        old, shown=shown, fragments=fragments, generation=generation, trait_bits=bits, words=words,
        columns=_columns(old, dropped, edited), aggregates=_aggregates(old, dropped, edited),
    )  # fmt: skip


def _rearranged(
    old: Snapshot,
    dead: set[int],
    edited: dict[int, Facts],
    added: list[tuple[Facts, int, int]],
    bases: list[int],
) -> Snapshot:
    length, total = len(old), len(old) + len(added)
    placed = dict(edited)
    placed.update((length + n, facts) for n, (facts, _, _) in enumerate(added))
    row_of, row_of_uuid = _index(old, dead, placed)
    shown: list[Shown | None] = [*old.shown, *([None] * len(added))]
    generation = np.concatenate([old.generation, np.zeros(len(added), np.int64)])
    alive = np.concatenate([old.alive, np.ones(len(added), np.bool_)])
    for row in dead:
        shown[row], alive[row], generation[row] = None, False, 0
    by_id = {facts.id: facts for facts in placed.values()}
    for row, facts in placed.items():
        shown[row] = _show(facts, by_id)
        generation[row] = facts.generation
    base = np.array(bases, np.int32)
    relative = np.array([parent for _, parent, _ in added], np.int32)
    fragments: list[bytes | None] = [*old.fragments, *([None] * len(added))]
    for row in (*dead, *edited):
        fragments[row] = None
    dropped = np.fromiter(chain(dead, edited), np.int32, len(dead) + len(edited))
    bits, words = _traits(old, dropped, placed, total)
    live = int(alive.sum())
    root = np.concatenate([old.root, base])
    return Snapshot(
        shown=shown,
        generation=generation,
        root=root,
        parent=np.concatenate([old.parent, np.where(relative < 0, -1, base + relative).astype(np.int32)]),
        size=np.concatenate([old.size, np.array([size for _, _, size in added], np.int32)]),
        alive=alive,
        row_of=row_of,
        row_of_uuid=row_of_uuid,
        columns=_columns(old, dropped, placed),
        trait_bits=bits,
        words=words,
        aggregates=_aggregates(old, dropped, placed),
        live=live,
        flat=int((root[alive] == np.nonzero(alive)[0]).sum()) == live,
        fragments=fragments,
    )


def _index(old: Snapshot, dead: set[int], placed: Mapping[int, Facts]) -> tuple[dict[int, int], dict[str, int]]:
    row_of, row_of_uuid = old.row_of.copy(), old.row_of_uuid.copy()
    for row in dead:
        shown = old.shown[row]
        if shown is not None and row_of.get(shown.id) == row:
            del row_of[shown.id]
            del row_of_uuid[shown.uuid]
    for row, facts in placed.items():
        row_of[facts.id] = row
        row_of_uuid[facts.uuid] = row
    return row_of, row_of_uuid


def _show(facts: Facts, by_id: Mapping[int, Facts]) -> Shown:
    parent = by_id.get(facts.parent_id) if facts.parent_id is not None else None
    root = by_id.get(facts.root_id, facts)
    return Shown(
        facts.id, facts.uuid, facts.name, parent.uuid if parent else None, root.uuid, facts.updated_at,
        tuple(sorted(facts.inventories)), facts.traits, facts.aggregates,
    )  # fmt: skip


# -- trees ------------------------------------------------------------------------------------------------------


def _trees(providers: Sequence[Facts]) -> list[list[tuple[Facts, int, int]]]:
    """Each tree in pre-order, children by id: (facts, relative row of the parent or -1, subtree size)."""
    children: dict[int, list[Facts]] = {}
    roots: list[Facts] = []
    for facts in providers:
        if facts.parent_id is None:
            roots.append(facts)
        else:
            children.setdefault(facts.parent_id, []).append(facts)
    return [[(root, -1, 1)] if root.id not in children else _pre_order(root, children) for root in roots]


def _pre_order(root: Facts, children: Mapping[int, list[Facts]]) -> list[tuple[Facts, int, int]]:
    order: list[tuple[Facts, int]] = []
    todo: list[tuple[Facts, int]] = [(root, -1)]
    while todo:
        facts, parent = todo.pop()
        row = len(order)
        order.append((facts, parent))
        below = sorted(children.get(facts.id, ()), key=lambda child: child.id, reverse=True)
        todo.extend((child, row) for child in below)
    sizes = [1] * len(order)
    for row in range(len(order) - 1, 0, -1):
        sizes[order[row][1]] += sizes[row]
    return [(facts, parent, size) for (facts, parent), size in zip(order, sizes, strict=True)]


def _same_shape(snapshot: Snapshot, tree: list[tuple[Facts, int, int]], rows: list[int | None]) -> bool:
    """Whether the tree stands in the snapshot already, row for row."""
    first = rows[0]
    if first is None or int(snapshot.size[first]) != len(tree) or int(snapshot.parent[first]) != -1:
        return False
    if len(tree) == 1:
        return True
    for n, (row, (_, parent, _)) in enumerate(zip(rows, tree, strict=True)):
        if row != first + n or (n and int(snapshot.parent[row]) != first + parent):
            return False
    return True


# -- columns, traits, aggregates ----------------------------------------------------------------------------------


def _columns(old: Snapshot, dropped: Rows, placed: Mapping[int, Facts]) -> dict[int, Column]:
    fresh: dict[int, list[tuple[int, int, int, int, int, int]]] = {}
    for row, facts in sorted(placed.items()):
        for class_id, numbers in facts.inventories.items():
            fresh.setdefault(class_id, []).append((row, *numbers))
    columns = dict(old.columns)
    for class_id in {id_ for shown in _known(old, dropped) for id_ in shown.classes} | fresh.keys():
        column = _column(columns.pop(class_id, None), dropped, fresh.get(class_id))
        if len(column.rows):
            columns[class_id] = column
    return columns


def _known(old: Snapshot, rows: Rows) -> list[Shown]:
    return [shown for row in rows.tolist() if (shown := old.shown[row]) is not None]


def _column(old: Column | None, dropped: Rows, fresh: list[tuple[int, int, int, int, int, int]] | None) -> Column:
    if old is not None and len(dropped):
        places = _places(old.rows, dropped)
        if fresh is not None and np.array_equal(np.sort(old.rows[places]), [numbers[0] for numbers in fresh]):
            return _renumbered(old, np.sort(places), np.array(fresh, np.int64))
        kept = np.ones(len(old.rows), np.bool_)
        kept[places] = False
        old = make_column(
            old.rows[kept], old.capacity[kept], old.used[kept], old.low[kept], old.high[kept], old.step[kept]
        )
    if fresh is None:
        assert old is not None
        return old
    block: Ints = np.array(fresh, np.int64)
    rows = block[:, 0].astype(np.int32)
    parts = [np.ascontiguousarray(block[:, n]) for n in range(1, 6)]
    if old is None:
        return make_column(rows, *parts)
    rows = np.concatenate([old.rows, rows])
    whole = [
        np.concatenate(pair)
        for pair in zip((old.capacity, old.used, old.low, old.high, old.step), parts, strict=True)
    ]
    if len(old.rows) and rows[len(old.rows)] < rows[len(old.rows) - 1]:
        order = np.argsort(rows, kind="stable")
        rows, whole = rows[order], [part[order] for part in whole]
    return make_column(rows, *whole)


def _renumbered(old: Column, places: Ints, block: Ints) -> Column:
    """The same rows; `block` has the new numbers at some places."""
    parts = [part.copy() for part in (old.capacity, old.used, old.low, old.high, old.step)]
    for n, part in enumerate(parts, 1):
        part[places] = block[:, n]
    return make_column(old.rows, *parts)


def _places(rows: Rows, wanted: Rows) -> Ints:
    """Where some of the wanted ones stand in ascending rows; those that are not there are left out."""
    places: Ints = np.searchsorted(rows, wanted)
    found: Ints = places[rows[np.minimum(places, len(rows) - 1)] == wanted]
    return found


def _traits(
    old: Snapshot, dropped: Rows, placed: Mapping[int, Facts], total: int
) -> tuple[dict[int, int], list[Words]]:
    bits = old.trait_bits
    unknown = {trait for facts in placed.values() for trait in facts.traits} - bits.keys()
    if unknown:
        bits = bits | {trait: len(bits) + n for n, trait in enumerate(sorted(unknown))}
    count = (len(bits) + _WORD - 1) // _WORD
    more = total - len(old)
    words = [np.concatenate([word, np.zeros(more, np.uint64)]) for word in old.words]
    words += [np.zeros(total, np.uint64) for _ in range(count - len(words))]
    for word in words:
        word[dropped] = 0
    masks: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, facts in placed.items():
        if facts.traits:
            groups.setdefault(facts.traits, []).append(row)
    for traits, rows in groups.items():
        masks[traits] = word_masks(bits, traits)
        for at, mask in masks[traits]:
            words[at][rows] = mask
    return bits, words


def word_masks(bits: Mapping[int, int], traits: Iterable[int]) -> list[tuple[int, int]]:
    """(word, bits in it) of a set of traits that all have bits."""
    found: dict[int, int] = {}
    for trait in traits:
        word, bit = divmod(bits[trait], _WORD)
        found[word] = found.get(word, 0) | (1 << bit)
    return sorted(found.items())


def _aggregates(old: Snapshot, dropped: Rows, placed: Mapping[int, Facts]) -> dict[str, Rows]:
    fresh: dict[str, list[int]] = {}
    for row, facts in placed.items():
        for aggregate in facts.aggregates:
            fresh.setdefault(aggregate, []).append(row)
    found = dict(old.aggregates)
    for aggregate in {name for shown in _known(old, dropped) for name in shown.aggregates} | fresh.keys():
        rows = found.pop(aggregate, None)
        if rows is not None and len(dropped):
            rows = rows[~np.isin(rows, dropped)]
        if aggregate in fresh:
            more = np.array(sorted(fresh[aggregate]), np.int32)
            rows = more if rows is None else np.sort(np.concatenate([rows, more]))
        if rows is not None and len(rows):
            found[aggregate] = rows
    return found
