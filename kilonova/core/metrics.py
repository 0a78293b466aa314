"""What a process counts of its own work, in Prometheus' format: rows say what there is, `Meters` keeps the numbers.

The library is imported when somebody first looks, or when numbers have piled up, so that no start waits for it. It
keeps the numbers in files where `PROMETHEUS_MULTIPROC_DIR` names a directory: there any of several processes on one
port answers for all of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from kilonova.core import clock
from kilonova.core.errors import Invalid

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
NO_OPERATION: Final = "none"
"""What stands in the place of an operation for requests that reached none."""

_PILE = 1000  # numbers that wait for the library at most
_SAMPLE_SECONDS = 5.0  # how often a process among several writes its gauges down, which others may answer for
_VERBS = {"counter": "inc", "gauge": "set", "histogram": "observe"}


class MetricsDirectoryMissing(Invalid):
    code = "metrics_directory_missing"
    message = "PROMETHEUS_MULTIPROC_DIR names {path}, which is no directory; make it before the processes start."


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A row. help: with the unit. labels: their names. buckets: upper bounds, of a histogram."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


Reader = Callable[[], Iterable[tuple[Metric, float]]]


class Meters:
    """The numbers of one process. As a WSGI callable it answers with them. Any thread may use it."""

    def __init__(self, rows: Iterable[Metric] = (), *, on: bool = True) -> None:
        """rows: the metrics there are. on: whether anything is kept. MetricsDirectoryMissing."""
        self.on = on
        self._rows = tuple(rows)
        self._lock = threading.Lock()
        self._pile: list[tuple[Metric, float, tuple[str, ...]]] = []
        self._acts: dict[tuple[Metric, tuple[str, ...]], Callable[[float], object]] = {}
        self._readers: list[Reader] = []
        self._made: dict[Metric, Any] = {}
        self._page: Any = None
        self._directory = os.environ.get(DIRECTORY, "") if on else ""
        self._sample_at = 0.0
        if self._directory:
            with self._lock:
                self._open()

    def record(self, metric: Metric, value: float = 1.0, *labels: str) -> None:
        """Add to a counter, or put into a histogram. labels: in the order of the row."""
        if not self.on:
            return
        act = self._acts.get((metric, labels))
        if act is not None:
            act(value)
        else:
            self._first(metric, value, labels)
        if self._directory and clock.monotonic() >= self._sample_at:
            self._sample()

    def watch(self, reader: Reader) -> None:
        """Ask for the values of gauges whenever somebody looks. It must wait for nothing."""
        if self.on:
            self._readers.append(reader)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Everything there is, as Prometheus asks for it."""
        with self._lock:
            self._open()
        self._sample()
        page: Iterable[bytes] = self._page(environ, start_response)
        return page

    def _first(self, metric: Metric, value: float, labels: tuple[str, ...]) -> None:
        with self._lock:
            if self._page is None:
                self._pile.append((metric, value, labels))
                if len(self._pile) >= _PILE:
                    self._open()
                return
            self._act(metric, labels)(value)

    def _act(self, metric: Metric, labels: tuple[str, ...]) -> Callable[[float], object]:
        made = self._made[metric]
        act: Callable[[float], object] = getattr(made.labels(*labels) if labels else made, _VERBS[metric.kind])
        self._acts[metric, labels] = act
        return act

    def _sample(self) -> None:
        self._sample_at = clock.monotonic() + _SAMPLE_SECONDS
        for reader in self._readers:
            for metric, value in reader():
                with self._lock:
                    self._act(metric, ())(value)

    def _open(self) -> None:
        """Make the metrics of the library and hand over what waits."""
        if self._page is not None:
            return
        if self._directory and not os.path.isdir(self._directory):
            raise MetricsDirectoryMissing(path=self._directory)
        import prometheus_client as library
        from prometheus_client.multiprocess import MultiProcessCollector

        library.disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = library.CollectorRegistry()
        self._made = {row: _make(library, row, registry) for row in self._rows}
        if self._directory:
            registry = library.CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        else:
            library.ProcessCollector(registry=registry)
        for metric, value, labels in self._pile:
            self._act(metric, labels)(value)
        self._pile.clear()
        self._page = library.make_wsgi_app(registry)


def _make(library: Any, row: Metric, registry: Any) -> Any:
    more: dict[str, Any] = {"labelnames": row.labels, "registry": registry}
    if row.kind == "histogram":
        return library.Histogram(row.name, row.help, buckets=row.buckets, **more)
    if row.kind == "gauge":
        return library.Gauge(row.name, row.help, multiprocess_mode="liveall", **more)
    return library.Counter(row.name, row.help, **more)


OFF: Final = Meters(on=False)
"""Keeps nothing."""
