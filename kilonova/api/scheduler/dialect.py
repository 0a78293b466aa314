"""How the scheduler's API words a refusal: bodies as Compute's, and 405 for a method that a path does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kilonova.core import json
from kilonova.core.errors import KilonovaError
from kilonova.http.dialect import COMPUTE_FAULTS, Fault


@dataclass(frozen=True, slots=True)
class SchedulerDialect:
    """`{"<fault name>": {"code", "message"}}` for everything."""

    wrong_method_is_404: bool = False
    media_types: tuple[str, ...] = ("application/json",)

    def fault(self, status: int, text: str, environ: dict[str, Any], error: KilonovaError | None) -> Fault:
        """An error of an operation."""
        body = {COMPUTE_FAULTS.get(status, "computeFault"): {"code": status, "message": text}}
        return status, (("Content-Type", "application/json"),), json.dumps(body)

    def unmatched(self, environ: dict[str, Any], allow: tuple[str, ...]) -> Fault:
        """404 for a path that is not served, 405 for a method that the path does not have."""
        if not allow:
            return self.fault(404, f"{environ.get('PATH_INFO') or '/'} is not a path that is served.", environ, None)
        text = f"The method {environ['REQUEST_METHOD']} is not served on this path."
        status, headers, body = self.fault(405, text, environ, None)
        return status, (*headers, ("Allow", ", ".join(allow))), body
