"""Every operation of the Compute API that exists, in the order of the reference pages."""

from __future__ import annotations

from typing import Final

from kilonova.api.compute import flavors, server_external_events, servers, versions
from kilonova.http.op import Op

OPS: Final[tuple[Op, ...]] = (*versions.OPS, *flavors.OPS, *servers.OPS, *server_external_events.OPS)
