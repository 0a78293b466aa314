"""What is asked for: groups of resources with their conditions, as ids. Knows nothing of HTTP, versions or names."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Group:
    """One set of `resources/required/member_of/in_tree` parameters; suffix "" is the unsuffixed group.

    resources: (class id, amount) pairs, none for a group that only places (microversion 1.36). required: sets of
    trait ids, each of which needs one of its members. member_of: sets of aggregate UUIDs, likewise. in_tree: the
    UUID of any provider of the tree that alone may serve this group.
    """

    suffix: str = ""
    resources: tuple[tuple[int, int], ...] = ()
    required: tuple[frozenset[int], ...] = ()
    forbidden: frozenset[int] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole request. `nested` False: no two providers of one tree in an answer (microversions below 1.29).

    isolate: every suffixed group on a provider of its own. limit: None for all answers. breadth: a limit takes one
    answer of each tree in turn, otherwise it exhausts a tree before the next. steps: the bound of work;
    a search that meets it answers what it has.
    """

    groups: tuple[Group, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[int] = frozenset()
    root_forbidden: frozenset[int] = frozenset()
    limit: int | None = None
    nested: bool = True
    breadth: bool = True
    steps: int = 200_000


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing to be placed whole on one provider: a class of the unsuffixed group, or a suffixed group."""

    group: int
    suffix: str
    needs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """Candidates: for each, the row of the snapshot that every slot got. `cut` says the bound of work was met."""

    slots: tuple[Slot, ...]
    rows: list[tuple[int, ...]] = field(default_factory=list)
    cut: bool = False


def slots_of(query: Query) -> tuple[Slot, ...]:
    """The slots of a request, unsuffixed ones first in the order of the groups given."""
    slots: list[Slot] = []
    for n, group in enumerate(query.groups):
        if group.suffix:
            slots.append(Slot(n, group.suffix, group.resources))
        else:
            slots.extend(Slot(n, "", (need,)) for need in group.resources)
    return tuple(slots)
