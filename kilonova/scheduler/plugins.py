"""The three kinds of plug-in, as rows. `registry` lists ours; others come by entry point and are rows as well.

A plug-in is pure: it reads its arguments and answers; it reaches for no database, clock or service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.request import Request
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.verdict import Verdict

Check = Callable[[HostState], Verdict]
"""Of one host: PASS, or `verdict.fail` with the numbers that decided."""


class Prepare(Protocol):
    """What a filter does once a request."""

    def __call__(self, request: Request, /) -> Check | None:
        """The check of one host, with all that does not depend on the host done before; None when every host passes.

        NoValidHost when the request cannot be right on any host (a hint that cannot be read).
        """
        ...


class Weigh(Protocol):
    """What a weigher does once a request, and again for a host that got a server."""

    def __call__(self, request: Request, states: Sequence[HostState], /) -> Sequence[float] | None:
        """A raw value per host, in their order, depending on that host and the request alone; larger is better.

        None when it has nothing to say of this request. Scaling to 0…1 and multiplying is done for all weighers alike.
        """
        ...


class Apply(Protocol):
    """What a request filter does before Placement is asked."""

    def __call__(self, request: Request, /) -> Additions | None:
        """What it adds to the question; None when it has nothing to add. RequestFilterFailed when no host is right."""
        ...


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. once: not asked again for the further servers of one request. on_rebuild: asked when a server is
    rebuilt where it is.
    """

    name: str
    prepare: Prepare
    once: bool = True
    on_rebuild: bool = False


@dataclass(frozen=True, slots=True)
class Weigher:
    """One weigher. multiplier: the option of that name, or a number of its own, times `sign`; an aggregate's metadata
    overrides it under `key` (the option's name when empty). minimum and maximum: fixed ends of the scale; values
    outside are clamped.
    """

    name: str
    weigh: Weigh
    multiplier: str | float
    sign: Literal[1, -1] = 1
    minimum: float | None = None
    maximum: float | None = None
    key: str = ""

    @property
    def metadata_key(self) -> str:
        """The aggregate metadata key that overrides the multiplier."""
        return self.key or (self.multiplier if isinstance(self.multiplier, str) else "")


@dataclass(frozen=True, slots=True)
class Additions:
    """What a request filter adds to the question put to Placement. aggregates: AND of OR-lists of uuids."""

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    aggregates: tuple[tuple[str, ...], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()

    def __or__(self, other: Additions) -> Additions:
        return Additions(
            self.required | other.required,
            self.forbidden | other.forbidden,
            self.aggregates + other.aggregates,
            self.forbidden_aggregates | other.forbidden_aggregates,
        )

    def __str__(self) -> str:
        parts = sorted(self.required) + [f"!{trait}" for trait in sorted(self.forbidden)]
        parts += [f"member_of in {', '.join(group)}" for group in self.aggregates]
        parts += [f"not member_of {uuid}" for uuid in sorted(self.forbidden_aggregates)]
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """One request filter. enabled: by its option."""

    name: str
    enabled: Callable[[SchedulerSettings], bool]
    apply: Apply
