"""What every service over HTTP counts."""

from __future__ import annotations

from typing import Final

from kilonova.core.metrics import Metric

REQUESTS: Final = Metric(
    "kilonova_http_request_seconds", "histogram",
    "Seconds from a request to its answer, by service, operation (method and path as the service declares them) and"
    " class of status. Its count is the number of requests.",
    ("service", "operation", "status"),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)  # fmt: skip

METRICS: Final = (REQUESTS,)
