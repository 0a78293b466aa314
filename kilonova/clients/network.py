"""Network (Neutron v2.0): networks, ports, security groups, floating addresses.

Bodies and answers are Neutron's own dictionaries without the outer key. Whose port it is and what a port means to a
server is decided above; here is only the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self

from kilonova.clients.rest import Doc, Errors, QuotaExceeded, RestClient, query, segment
from kilonova.core import clock
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, Invalid, NotFound

_EXTENSIONS_FOR = 600.0  # seconds


class NetworkNotFound(NotFound):
    code, message = "network_not_found", "Network {network} could not be found."


class PortNotFound(NotFound):
    code, message = "port_not_found", "Port {port} could not be found."


class PortInUse(Conflict):
    code, message = "port_in_use", "Port {port} is still in use."


class SecurityGroupNotFound(NotFound):
    code, message = "security_group_not_found", "A security group could not be found: {reason}"


class FixedIpInUse(Conflict):
    code, message = "fixed_ip_in_use", "A fixed IP address is already in use on network {network}: {reason}"


class MacInUse(Conflict):
    code, message = "mac_in_use", "The MAC address is already in use on network {network}: {reason}"


class NoMoreFixedIps(Conflict):
    code, message = "no_more_fixed_ips", "No fixed IP addresses are available on network {network}."


class InvalidFixedIp(Invalid):
    code, message = "invalid_fixed_ip", "The fixed IP address does not belong to network {network}: {reason}"


class PortQuotaExceeded(QuotaExceeded):
    code, message = "port_over_quota", "The port quota of the network service is exceeded: {reason}"


class AutoAllocationFailed(Conflict):
    code, message = "auto_allocation_failed", "A network could not be allocated automatically: {reason}"


class Network(Protocol):
    """What compute needs of the network service. Lists are whole (no paging)."""

    def as_user(self, ctx: Context | None) -> Self: ...

    def list_networks(
        self, project_id: str | None = None, ids: Iterable[str] | None = None, **filters: Any
    ) -> list[Doc]: ...

    def show_network(self, network: str) -> Doc: ...

    def list_subnets(self, **filters: Any) -> list[Doc]: ...

    def list_ports(self, **filters: Any) -> list[Doc]: ...

    def show_port(self, port: str) -> Doc: ...

    def create_port(self, body: Doc) -> Doc: ...

    def create_ports(self, bodies: list[Doc]) -> list[Doc]: ...

    def update_port(self, port: str, body: Doc) -> Doc: ...

    def delete_port(self, port: str) -> bool: ...

    def list_security_groups(self, project_id: str | None = None, **filters: Any) -> list[Doc]: ...

    def list_floatingips(self, port_ids: Iterable[str] | None = None, **filters: Any) -> list[Doc]: ...

    def extensions(self) -> frozenset[str]: ...

    def quotas(self, project_id: str) -> dict[str, int]: ...

    def quota_usage(self, project_id: str, resource: str) -> tuple[int, int]: ...

    def auto_allocate(self, project_id: str, *, dry_run: bool = False) -> str: ...


class HttpNetwork:
    """The network service over its REST API; the endpoint is the service's root, without `/v2.0`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest
        self._extensions: tuple[float, frozenset[str]] = (float("-inf"), frozenset())

    def as_user(self, ctx: Context | None) -> Self:
        """The same with the user's own token, where the request has one."""
        return type(self)(self._rest.as_user(ctx))

    def list_networks(
        self, project_id: str | None = None, ids: Iterable[str] | None = None, **filters: Any
    ) -> list[Doc]:
        """Networks; with a project those it may boot on: its own and the shared ones, each once.

        `ids` keeps only these; other filters are Neutron's query parameters.
        """
        chosen = filters if ids is None else {**filters, "id": sorted(set(ids))}
        if ids is not None and not chosen["id"]:
            return []
        if project_id is None:
            return self._list("networks", chosen)
        own = self._list("networks", {**chosen, "tenant_id": project_id, "shared": False})
        return own + self._list("networks", {**chosen, "shared": True})

    def show_network(self, network: str) -> Doc:
        """One network. NetworkNotFound."""
        return self._show("network", network, {404: NetworkNotFound}, network=network)

    def list_subnets(self, **filters: Any) -> list[Doc]:
        """Subnets by Neutron's query parameters (`network_id`, `id` …)."""
        return self._list("subnets", filters)

    def list_ports(self, **filters: Any) -> list[Doc]:
        """Ports by Neutron's query parameters (`device_id`, `network_id`, `binding:host_id` …)."""
        return self._list("ports", filters)

    def show_port(self, port: str) -> Doc:
        """One port. PortNotFound."""
        return self._show("port", port, _PORT, port=port, network=None)

    def create_port(self, body: Doc) -> Doc:
        """Make a port. NetworkNotFound, FixedIpInUse, MacInUse, NoMoreFixedIps, InvalidFixedIp, PortQuotaExceeded."""
        network = body.get("network_id")
        found = self._rest.call("POST", "/v2.0/ports", json={"port": body}, errors=_CREATE, network=network)
        return dict(found["port"])

    def create_ports(self, bodies: list[Doc]) -> list[Doc]:
        """Make several ports in one call, all or none; errors as for one."""
        network = bodies[0].get("network_id") if bodies else None
        found = self._rest.call("POST", "/v2.0/ports", json={"ports": bodies}, errors=_CREATE, network=network)
        return list(found["ports"])

    def update_port(self, port: str, body: Doc) -> Doc:
        """Change a port; only the keys given. PortNotFound, FixedIpInUse, MacInUse."""
        path = f"/v2.0/ports/{segment(port)}"
        found = self._rest.call("PUT", path, json={"port": body}, errors=_PORT, port=port, network=None)
        return dict(found["port"])

    def delete_port(self, port: str) -> bool:
        """False when it was not there. PortInUse where Neutron will not."""
        response = self._rest.request("DELETE", f"/v2.0/ports/{segment(port)}")
        if response.status == 404:
            return False
        return self._rest.expect(response, _PORT, port=port) is None

    def list_security_groups(self, project_id: str | None = None, **filters: Any) -> list[Doc]:
        """Security groups with their rules; of one project where given (its `default` is made on first use)."""
        return self._list("security-groups", filters if project_id is None else {**filters, "tenant_id": project_id})

    def list_floatingips(self, port_ids: Iterable[str] | None = None, **filters: Any) -> list[Doc]:
        """Floating addresses; of these ports where given."""
        if port_ids is None:
            return self._list("floatingips", filters)
        ports = sorted(set(port_ids))
        return self._list("floatingips", {**filters, "port_id": ports}) if ports else []

    def extensions(self) -> frozenset[str]:
        """Aliases of what the service can do; asked again after a while."""
        at, known = self._extensions
        if clock.monotonic() - at >= _EXTENSIONS_FOR:
            known = frozenset(row["alias"] for row in self._list("extensions", {}))
            self._extensions = (clock.monotonic(), known)
        return known

    def quotas(self, project_id: str) -> dict[str, int]:
        """Limits by resource; -1 is unlimited."""
        return dict(self._rest.call("GET", f"/v2.0/quotas/{segment(project_id)}")["quota"])

    def quota_usage(self, project_id: str, resource: str) -> tuple[int, int]:
        """(limit, used plus reserved) of one resource, such as `port`."""
        row = self._rest.call("GET", f"/v2.0/quotas/{segment(project_id)}/details.json")["quota"][resource]
        return int(row["limit"]), int(row["used"]) + int(row.get("reserved") or 0)

    def auto_allocate(self, project_id: str, *, dry_run: bool = False) -> str:
        """The id of the project's automatic network, made on first use; with `dry_run` only whether it could be."""
        path = f"/v2.0/auto-allocated-topology/{segment(project_id)}"
        errors = {400: AutoAllocationFailed, 404: AutoAllocationFailed, 409: AutoAllocationFailed}
        found = self._rest.call("GET", path + ("?fields=dry-run" if dry_run else ""), errors=errors)
        return str(found["auto_allocated_topology"]["id"])

    def _list(self, plural: str, filters: Doc) -> list[Doc]:
        found = self._rest.call("GET", f"/v2.0/{plural}{query(filters)}")
        return list(found[plural.replace("-", "_")])

    def _show(self, noun: str, key: str, errors: Errors, **details: Any) -> Doc:
        found = self._rest.call("GET", f"/v2.0/{noun}s/{segment(key)}", errors=errors, **details)
        return dict(found[noun])


_ADDRESSES: Errors = {
    (409, "IpAddressInUse"): FixedIpInUse,
    (409, "IpAddressAlreadyAllocated"): FixedIpInUse,
    (409, "MacAddressInUse"): MacInUse,
    (409, "IpAddressGenerationFailure"): NoMoreFixedIps,
    (409, "OverQuota"): PortQuotaExceeded,
    (400, "InvalidIpForNetwork"): InvalidFixedIp,
    (400, "InvalidIpForSubnet"): InvalidFixedIp,
    (404, "SecurityGroupNotFound"): SecurityGroupNotFound,
}
_CREATE: Errors = {**_ADDRESSES, 404: NetworkNotFound}
_PORT: Errors = {**_ADDRESSES, 404: PortNotFound, (409, "PortInUse"): PortInUse}
