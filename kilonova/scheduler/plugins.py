"""The three kinds of plug-in, as rows. `registry` lists ours; others come by entry point and are rows as well.

A plug-in is pure: it reads its arguments and answers; it reaches for no database, clock or service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.host_state import HostState, Snapshot
from kilonova.scheduler.request import Request
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.verdict import Verdict

Check = Callable[[HostState], Verdict]


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. prepare: does once per request what does not depend on the host, and answers the check of one host,
    or None when every host passes this request. once: not asked again for the further servers of one request.
    on_rebuild: asked when a server is rebuilt where it is.
    """

    name: str
    prepare: Callable[[Request], Check | None]
    once: bool = True
    on_rebuild: bool = False


@dataclass(frozen=True, slots=True)
class Weigher:
    """One weigher. weigh: a raw value per host, depending on that host and the request alone; None when it has nothing
    to say of this request. multiplier: the option of that name, times `sign`; an aggregate's metadata overrides the
    option under `key` (the option's name when empty). minimum and maximum: fixed ends of the scale; values outside
    are clamped.
    """

    name: str
    weigh: Callable[[Request, Sequence[HostState]], Sequence[float] | None]
    multiplier: str
    sign: Literal[1, -1] = 1
    minimum: float | None = None
    maximum: float | None = None
    key: str = ""

    @property
    def metadata_key(self) -> str:
        """The aggregate metadata key that overrides the multiplier."""
        return self.key or self.multiplier


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
    """One request filter. enabled: by its option. apply: what it adds, None for nothing; RequestFilterFailed when no
    host can be right.
    """

    name: str
    enabled: Callable[[SchedulerSettings], bool]
    apply: Callable[[RequestSpec, Snapshot, SchedulerSettings], Additions | None]
