"""Which rows may serve which slot: a few vector operations over all providers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kilonova.placement.candidates.arrange import word_masks
from kilonova.placement.candidates.request import Group, Query, Slot
from kilonova.placement.candidates.snapshot import Mask, Rows, Snapshot

_NONE = np.zeros(0, np.int32)


def fitting(snapshot: Snapshot, class_id: int, amount: int) -> Rows:
    """The rows with room for so much of a class, unit rules included."""
    column = snapshot.columns.get(class_id)
    if column is None:
        return _NONE
    fits = column.room >= amount
    if column.low_max > amount:
        fits &= column.low <= amount
    if column.high_min < amount:
        fits &= column.high >= amount
    if not column.plain:
        fits &= amount % column.step == 0
    return column.rows[fits]


def eligible(snapshot: Snapshot, slot: Slot, allowed: Mask | None) -> Rows:
    """The rows that could take a whole slot if it were alone; every allowed row for a slot that needs nothing."""
    if not slot.needs:
        return np.nonzero(snapshot.alive if allowed is None else allowed & snapshot.alive)[0].astype(np.int32)
    rows = fitting(snapshot, *slot.needs[0])
    for need in slot.needs[1:]:
        if not len(rows):
            break
        rows = rows[np.isin(rows, fitting(snapshot, *need), assume_unique=True)]
    return rows if allowed is None else rows[allowed[rows]]


def allowed_rows(snapshot: Snapshot, group: Group, *, collective: bool) -> Mask | None:
    """The rows that meet a group's conditions; None when it has none.

    collective: the group's required traits are looked at over all its providers together, so not here.
    """
    masks: list[Mask] = []
    if not collective:
        masks.extend(_any_of(snapshot, traits) for traits in group.required)
    if group.forbidden:
        masks.append(~_any_of(snapshot, group.forbidden))
    masks.extend(_members(snapshot, aggregates, not group.suffix) for aggregates in group.member_of)
    if group.not_member_of:
        masks.append(~_members(snapshot, group.not_member_of, not group.suffix))
    if group.in_tree is not None:
        masks.append(_in_tree(snapshot, group.in_tree))
    return _all(masks)


def allowed_roots(snapshot: Snapshot, query: Query) -> Mask | None:
    """Rows whose root has the traits that `root_required` asks of it."""
    masks = [_any_of(snapshot, (trait,)) for trait in query.root_required]
    if query.root_forbidden:
        masks.append(~_any_of(snapshot, query.root_forbidden))
    mask = _all(masks)
    return None if mask is None else mask[snapshot.root]


def having(snapshot: Snapshot, traits: Iterable[int]) -> Mask:
    """The rows with any of some traits."""
    return _any_of(snapshot, traits)


def members(snapshot: Snapshot, aggregates: Iterable[str], *, through_root: bool) -> Mask:
    """The rows in any of some aggregates, themselves or through their root."""
    return _members(snapshot, aggregates, through_root)


def _all(masks: list[Mask]) -> Mask | None:
    if not masks:
        return None
    mask = masks[0]
    for other in masks[1:]:
        mask = mask & other
    return mask


def _any_of(snapshot: Snapshot, traits: Iterable[int]) -> Mask:
    mask = np.zeros(len(snapshot), np.bool_)
    known = [trait for trait in traits if trait in snapshot.trait_bits]
    for word, bits in word_masks(snapshot.trait_bits, known):
        mask |= (snapshot.words[word] & np.uint64(bits)) != 0
    return mask


def _members(snapshot: Snapshot, aggregates: Iterable[str], through_root: bool) -> Mask:
    mask = np.zeros(len(snapshot), np.bool_)
    for aggregate in aggregates:
        rows = snapshot.aggregates.get(aggregate)
        if rows is not None:
            mask[rows] = True
    return mask | mask[snapshot.root] if through_root and not snapshot.flat else mask


def _in_tree(snapshot: Snapshot, uuid: str) -> Mask:
    row = snapshot.row_of_uuid.get(uuid)
    if row is None:
        return np.zeros(len(snapshot), np.bool_)
    return np.asarray(snapshot.root == snapshot.root[row])
