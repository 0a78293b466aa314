"""Microversions: numbers, ranges, values that change at a version, and the negotiation of one per request.

Nothing below an `api` package sees a version: rows resolve to plain values before a use case is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from kilonova.core.errors import KilonovaError

Version = tuple[int, int]
T = TypeVar("T")

_NUMBER = re.compile(r"^([1-9]\d*)\.([1-9]\d*|0)$", re.ASCII)
_LONGEST = 100  # characters of a version; the interpreter does not read numbers of thousands of digits


class VersionMalformed(KilonovaError):
    """The header holds no version: 400."""

    status, code = 400, "version_malformed"
    message = "The API version {text!r} is not of the form Major.Minor, two numbers joined by a dot, or 'latest'."


class VersionUnsupported(KilonovaError):
    """The header holds a version that is not served: 406."""

    status, code = 406, "version_unsupported"
    message = "Version {requested} is not supported by the API. The minimum is {minimum} and the maximum is {maximum}."


def parse(text: str) -> Version:
    """(major, minor) of `2.17`; VersionMalformed for anything with leading zeros, spaces or other parts."""
    match = _NUMBER.match(text)
    if not match or text != match.group(0) or len(text) > _LONGEST:
        raise VersionMalformed(text=text[:_LONGEST])
    return int(match.group(1)), int(match.group(2))


def _parse_zero(text: str) -> Version:
    major, _, minor = text[:_LONGEST].partition(".")
    return (0, int(minor)) if major == "0" and minor.isascii() and minor.isdigit() else parse(text)


def show(version: Version) -> str:
    """`2.17`."""
    return f"{version[0]}.{version[1]}"


@dataclass(frozen=True, slots=True)
class Span:
    """A set of versions: intervals, both ends included, None for open."""

    intervals: tuple[tuple[Version | None, Version | None], ...]

    def __contains__(self, version: Version) -> bool:
        return any(
            (low is None or low <= version) and (high is None or version <= high) for low, high in self.intervals
        )

    @property
    def first(self) -> Version | None:
        """The lowest version; None when open below."""
        return self.intervals[0][0]

    @property
    def last(self) -> Version | None:
        """The highest version; None when open above."""
        return self.intervals[-1][1]

    def __str__(self) -> str:
        return ", ".join(
            show(low) if low == high and low else f"{show(low) if low else ''}–{show(high) if high else ''}"
            for low, high in self.intervals
        )


ALWAYS = Span(((None, None),))


@cache
def span(text: str) -> Span:
    """`"2.3"` is from 2.3 on, `"-2.35"` until 2.35, `"2.32-2.32, 2.42-"` two intervals."""
    intervals: list[tuple[Version | None, Version | None]] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        intervals.append((parse(low) if low else None, parse(high) if dash and high else None))
    return Span(tuple(intervals))


def between(since: str | None, until: str | None) -> Span:
    """From `since` to `until`, both included, either open."""
    if since is None and until is None:
        return ALWAYS
    return Span(((parse(since) if since else None, parse(until) if until else None),))


class Since(Generic[T]):
    """A value that changes: `Since(200, ("2.2", 201))` is 200 before 2.2 and 201 from then on."""

    __slots__ = ("changes", "default")

    def __init__(self, default: T, *changes: tuple[str, T]) -> None:
        self.default = default
        self.changes: tuple[tuple[Version, T], ...] = tuple((parse(version), value) for version, value in changes)

    def at(self, version: Version | None) -> T:
        """The value at a version."""
        found = self.default
        for start, value in self.changes:
            if version is not None and version >= start:
                found = value
        return found

    def values(self) -> tuple[T, ...]:
        """All values, oldest first."""
        return (self.default, *(value for _, value in self.changes))


def at(value: T | Since[T], version: Version | None) -> T:
    """The value at a version, whether it changes or not."""
    return value.at(version) if isinstance(value, Since) else value


@dataclass(frozen=True, slots=True)
class Versions:
    """A service's list of microversions and the headers that choose among them.

    `lines` has one sentence per version; `legacy_header` is an older header that is read when the standard one says
    nothing for this service, and echoed beside it.
    """

    service: str
    lines: Mapping[str, str]
    legacy_header: str | None = None
    default: str | None = None
    vary: tuple[str, ...] = ()
    zero: bool = False  # 0.5 is a version too, one that is not served

    @property
    def minimum(self) -> Version:
        return parse(next(iter(self.lines)))

    @property
    def maximum(self) -> Version:
        return parse(list(self.lines)[-1])

    def requested(self, environ: Mapping[str, Any]) -> str | None:
        """What the request's headers ask for, or None. The last entry that names this service wins."""
        found: str | None = None
        for part in str(environ.get("HTTP_OPENSTACK_API_VERSION", "")).split(","):
            words = part.split()
            if len(words) == 2 and words[0].lower() == self.service:
                found = words[1]
            elif len(words) > 2 and words[0].lower() == self.service:
                found = part.strip()[len(words[0]) :].strip()
        if found is None and self.legacy_header:
            text = str(environ.get("HTTP_" + self.legacy_header.upper().replace("-", "_"), ""))
            found = text.split(",")[-1].strip() or None
        return found


@dataclass(frozen=True, slots=True)
class Negotiated:
    """The outcome: the version to serve, or the error to answer; headers hold whatever is to be echoed."""

    version: Version | None
    headers: tuple[tuple[str, str], ...]
    error: KilonovaError | None = None


class Negotiator:
    """Negotiation with the answers for known headers kept, so that a request pays a look-up."""

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self._bounds = versions.minimum, versions.maximum
        self._known: dict[str | None, Negotiated] = {}
        self.lowest = self._bounds[0]

    def negotiate(self, environ: Mapping[str, Any]) -> Negotiated:
        """Choose the version of a request (contract errors.md 4)."""
        text = self.versions.requested(environ)
        found = self._known.get(text)
        if found is None:
            found = self._decide(text)
            if len(self._known) < 1000:
                self._known[text] = found
        return found

    def _decide(self, text: str | None) -> Negotiated:
        low, high = self._bounds
        if text is None:
            version = parse(self.versions.default) if self.versions.default else low
        elif text.lower() == "latest":
            version = high
        else:
            try:
                version = _parse_zero(text) if self.versions.zero else parse(text)
            except VersionMalformed as error:
                return Negotiated(None, (), error)
        headers = self.headers(version)
        if not low <= version <= high:
            unsupported = VersionUnsupported(requested=show(version), minimum=show(low), maximum=show(high))
            return Negotiated(None, headers, unsupported)
        return Negotiated(version, headers)

    def headers(self, version: Version) -> tuple[tuple[str, str], ...]:
        """The headers that echo a version, with one Vary each."""
        text = show(version)
        names = [("OpenStack-API-Version", f"{self.versions.service} {text}")]
        if self.versions.legacy_header:
            names.append((self.versions.legacy_header, text))
        vary = self.versions.vary or tuple(name for name, _ in names)
        return (*names, *(("Vary", name) for name in vary))
