"""What Placement counts."""

from __future__ import annotations

from typing import Final

from kilonova.core.errors import Conflict
from kilonova.core.metrics import Metric
from kilonova.placement.errors import ConcurrentUpdate, ConsumerGenerationConflict, GenerationConflict, NoRoom

SEARCH: Final = Metric(
    "kilonova_placement_candidate_search_seconds", "histogram",
    "Seconds of a search for allocation candidates, without reading the request and writing the answer.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)  # fmt: skip
FOUND: Final = Metric(
    "kilonova_placement_candidates", "histogram", "Candidates that a search found.",
    buckets=(0, 1, 10, 100, 1000, 10_000, 100_000),
)  # fmt: skip
CUT: Final = Metric(
    "kilonova_placement_candidate_searches_cut_total", "counter", "Searches that ended at the bound of work.",
)  # fmt: skip
CLAIMS: Final = Metric(
    "kilonova_placement_claims_total", "counter", "Consumers whose allocations were written.",
)  # fmt: skip
CONFLICTS: Final = Metric(
    "kilonova_placement_write_conflicts_total", "counter",
    "Writes that met others: `race` was tried again; refused (409) were `lost` after the last try, `provider` and"
    " `consumer` for a generation that is not the current one, `no_room`, and `other`.",
    ("kind",),
)  # fmt: skip
REFRESH: Final = Metric(
    "kilonova_placement_snapshot_refresh_seconds", "histogram",
    "Seconds to bring the snapshot up to date when there was something new: `applied` changes, or `rebuilt` from all.",
    ("how",), (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)  # fmt: skip
DRIFTS: Final = Metric(
    "kilonova_placement_snapshot_drifts_total", "counter",
    "Times that the snapshot was not what the database has, and was rebuilt.",
)  # fmt: skip
PROVIDERS: Final = Metric("kilonova_placement_snapshot_providers", "gauge", "Resource providers in the snapshot.")
ROWS: Final = Metric(
    "kilonova_placement_snapshot_rows", "gauge", "Rows of the snapshot, with those of providers that changed or went.",
)  # fmt: skip
BYTES: Final = Metric("kilonova_placement_snapshot_bytes", "gauge", "Bytes of the snapshot's columns.")
BEHIND: Final = Metric(
    "kilonova_placement_snapshot_revisions_behind", "gauge",
    "Committed writes that the snapshot did not have yet when a request last looked; they were applied then.",
)  # fmt: skip
LOOKED: Final = Metric(
    "kilonova_placement_snapshot_looked_timestamp_seconds", "gauge",
    "Time (Unix, in seconds) at which the snapshot last was as the database; it is looked at when a request needs it.",
)  # fmt: skip

METRICS: Final = (
    SEARCH, FOUND, CUT, CLAIMS, CONFLICTS, REFRESH, DRIFTS, PROVIDERS, ROWS, BYTES, BEHIND, LOOKED,
)  # fmt: skip

_KINDS: tuple[tuple[type[Conflict], str], ...] = (
    (ConsumerGenerationConflict, "consumer"),
    (GenerationConflict, "provider"),
    (ConcurrentUpdate, "provider"),
    (NoRoom, "no_room"),
)


def conflict_kind(error: Conflict) -> str:
    """The label of CONFLICTS for a refusal."""
    return next((kind for known, kind in _KINDS if isinstance(error, known)), "other")
