"""The version document at `/`, open to everybody."""

from __future__ import annotations

from typing import Any

from kilonova.http import versions
from kilonova.http.op import Op, Request
from kilonova.placement.versions import VERSIONS


def show_versions(req: Request) -> dict[str, Any]:
    """The one version there is, with its range."""
    return {
        "versions": [
            {
                "id": "v1.0",
                "status": "CURRENT",
                "min_version": versions.show(VERSIONS.minimum),
                "max_version": versions.show(VERSIONS.maximum),
                "links": [{"rel": "self", "href": ""}],
            }
        ]
    }


OPS = (
    Op("GET", "/", show_versions, auth=False, summary="Versions"),
    Op("GET", "", show_versions, auth=False, summary="Versions"),
)
