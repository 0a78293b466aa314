"""Every metric there is, and the meters of a process as its configuration wants them."""

from __future__ import annotations

from typing import Any, Final

from kilonova.core.metrics import Meters
from kilonova.http import metrics as http
from kilonova.placement import metrics as placement

TABLES: Final = {"Services over HTTP": http.METRICS, "Placement": placement.METRICS}


def meters(conf: Any) -> Meters:
    """Of a process that serves Placement. MetricsDirectoryMissing."""
    return Meters((row for rows in TABLES.values() for row in rows), on=conf.prometheus.enabled)
