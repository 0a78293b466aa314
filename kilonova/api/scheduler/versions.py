"""The versions of the scheduler's API, one sentence each."""

from __future__ import annotations

from kilonova.http.versions import Versions

VERSIONS = Versions("scheduler", {"1.0": "Decisions, simulations and capacity."}, vary=("openstack-api-version",))
