"""Accelerators (Cyborg v2): device profiles, and the accelerator requests (ARQs) by which a server gets its devices.

An ARQ is made for a profile, one for each device that a group of the profile asks for; then it is bound to a host, a
provider and a server. Binding takes its time: the ARQ's `state` tells, and an external event that it is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, Self

from kilonova.clients.rest import Doc, RestClient, query, segment
from kilonova.core.context import Context
from kilonova.core.errors import NotFound

INITIAL, BOUND = "Initial", "Bound"
FAILED: Final = frozenset({"BindFailed", "Unbound", "Deleting"})
"""States from which an ARQ does not become Bound any more."""

_WITH_PROJECT: Final = "2.1"
"""The microversion from which a binding names the project."""


class DeviceProfileNotFound(NotFound):
    code, message = "device_profile_not_found", "Device profile {profile} could not be found."


@dataclass(frozen=True, slots=True)
class Binding:
    """Where an ARQ's device is to be: the host's name is its hypervisor's; provider is the device's in Placement."""

    arq: str
    hostname: str
    provider: str
    server: str
    project_id: str


class Accelerators(Protocol):
    """What compute needs of the accelerator service."""

    def as_user(self, ctx: Context | None) -> Self: ...

    def device_profiles(self, name: str) -> list[Doc]: ...

    def create_requests(self, profile: str) -> list[Doc]: ...

    def list_requests(self, server: str | None = None) -> list[Doc]: ...

    def bind(self, bindings: Iterable[Binding]) -> None: ...

    def delete_request(self, arq: str) -> bool: ...

    def delete_of(self, server: str) -> None: ...


class HttpAccelerators:
    """The accelerator service over its REST API; the endpoint is the service's root, without `/v2`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def as_user(self, ctx: Context | None) -> Self:
        """The same with the user's own token, where the request has one."""
        return type(self)(self._rest.as_user(ctx))

    def device_profiles(self, name: str) -> list[Doc]:
        """The profiles of that name, each with its `groups`: maps of `resources:CLASS`, `trait:NAME`, `accel:…`."""
        found = self._rest.call("GET", "/v2/device_profiles" + query({"name": name}))
        return [row for row in found["device_profiles"] if row["name"] == name]

    def create_requests(self, profile: str) -> list[Doc]:
        """Make a profile's ARQs, bound to nothing; each has its `device_profile_group_id`. DeviceProfileNotFound."""
        body = {"device_profile_name": profile}
        errors = {404: DeviceProfileNotFound}
        return list(self._rest.call("POST", _REQUESTS, json=body, errors=errors, profile=profile)["arqs"])

    def list_requests(self, server: str | None = None) -> list[Doc]:
        """The ARQs of a server, or all that there are."""
        return list(self._rest.call("GET", _REQUESTS + query({"instance": server}))["arqs"])

    def bind(self, bindings: Iterable[Binding]) -> None:
        """Begin to bind. RemoteInvalid also when the server has ARQs already: all of a server are bound by one call."""
        body = {one.arq: _patch(one) for one in bindings}
        self._rest.call("PATCH", _REQUESTS, json=body, version=_WITH_PROJECT)

    def delete_request(self, arq: str) -> bool:
        """Delete one ARQ; its device is free again. False when it was not there."""
        response = self._rest.request("DELETE", f"{_REQUESTS}?arqs={segment(arq)}")
        if response.status == 404:
            return False
        return self._rest.expect(response) is None

    def delete_of(self, server: str) -> None:
        """Delete the ARQs that are bound to a server; done already is done."""
        self._rest.call("DELETE", _REQUESTS + query({"instance": server}))


_REQUESTS = "/v2/accelerator_requests"


def _patch(binding: Binding) -> list[Doc]:
    values = {
        "hostname": binding.hostname, "device_rp_uuid": binding.provider, "instance_uuid": binding.server,
        "project_id": binding.project_id,
    }  # fmt: skip
    return [{"path": f"/{name}", "op": "add", "value": value} for name, value in values.items()]
