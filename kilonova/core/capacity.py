"""How many more servers of a kind fit: in all, by zone and by aggregate, and what runs out first."""

from __future__ import annotations

import msgspec


class Share(msgspec.Struct, frozen=True):
    """A zone or an aggregate. hosts: those that take at least one more. runs_out_first: a resource class or a filter,
    the one that ends it on most hosts.
    """

    name: str
    hosts: int
    fits: int
    runs_out_first: str = ""


class Limit(msgspec.Struct, frozen=True):
    """A resource class or a filter, and on how many hosts it is what keeps one more server out."""

    name: str
    hosts: int


class Capacity(msgspec.Struct, frozen=True):
    """The answer for all hosts. explanation: why none fits, in short."""

    fits: int
    hosts: int
    zones: tuple[Share, ...] = ()
    aggregates: tuple[Share, ...] = ()
    limits: tuple[Limit, ...] = ()
    explanation: str = ""
