"""The servers of a cloud as its administrator reads them: where each is, of which size, and what is on the move.

Only what every compute service with microversion 2.69 has is used. That one, because older ones leave out servers of a
cell that does not answer, which would then look as if they were gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from kilonova.clients.rest import Doc, RemoteInvalid, RestClient, failure, query, segment

VERSION: Final = "2.69"
_PAGE: Final = 1000
_TRIES: Final = 3
_MOVING: Final = frozenset(("building", "shelved_offloaded", "soft-delete", "deleted"))


@dataclass(frozen=True, slots=True)
class Size:
    """A server's own copy of its flavor. ram and swap in MiB, disks in GiB. extra_specs: None when they are hidden."""

    name: str
    vcpus: int
    ram: int
    disk: int
    ephemeral: int
    swap: int
    extra_specs: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True, slots=True)
class Server:
    """One server. node: the hypervisor's name, empty when it is on none. size: None when it cannot be told."""

    id: str
    project_id: str
    user_id: str
    node: str
    vm_state: str
    busy: bool
    from_volume: bool
    created_at: datetime | None
    size: Size | None

    @property
    def settled(self) -> bool:
        """Whether it is on a host and nothing is under way, so that it must hold what its flavor says."""
        return bool(self.node) and not self.busy and self.vm_state not in _MOVING and self.size is not None


@dataclass(frozen=True, slots=True)
class Migration:
    """A server on its way from one host to another."""

    uuid: str
    server: str
    status: str


class Servers(Protocol):
    """What a comparison with Placement needs of the compute service."""

    def every(self) -> dict[str, Server]: ...

    def show(self, server: str) -> Server | None: ...

    def migrations(self, server: str | None = None) -> Iterator[Migration]: ...


class HttpServers:
    """The servers of all projects over the Compute API; the endpoint ends in `/v2.1`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def every(self) -> dict[str, Server]:
        """All servers by id. RemoteForbidden unless an administrator asks, RemoteUnavailable."""
        for attempt in range(1, _TRIES + 1):
            try:
                return {found.id: found for found in self._listed()}
            except RemoteInvalid:  # the server after which a page was to begin has been deleted
                if attempt == _TRIES:
                    raise
        raise AssertionError("unreachable")

    def show(self, server: str) -> Server | None:
        """One server; None when there is none of this id."""
        response = self._rest.request("GET", f"/servers/{segment(server)}", version=VERSION)
        if response.status == 404:
            return None
        if response.status != 200:
            raise failure("compute", response)
        return _server(response.json()["server"], {})

    def migrations(self, server: str | None = None) -> Iterator[Migration]:
        """Migrations, the newest first, of all servers or one; none where the service has no such thing."""
        marker: str | None = None
        while True:
            asked = {"instance_uuid": server, "limit": _PAGE, "marker": marker}
            response = self._rest.request("GET", "/os-migrations" + query(asked), version=VERSION)
            if response.status == 404:
                return
            if response.status != 200:
                raise failure("compute", response)
            rows = response.json()["migrations"]
            if not rows:
                return
            for row in rows:
                yield Migration(str(row["uuid"]), str(row["instance_uuid"]), str(row["status"]))
            marker = str(rows[-1]["uuid"])

    def _listed(self) -> Iterator[Server]:
        marker: str | None = None
        sizes: dict[Size, Size] = {}
        while True:
            asked = {"all_tenants": 1, "limit": _PAGE, "marker": marker}
            rows = self._rest.call("GET", "/servers/detail" + query(asked), version=VERSION)["servers"]
            if not rows:
                return
            for row in rows:
                yield _server(row, sizes)
            marker = str(rows[-1]["id"])


def _server(row: Doc, sizes: dict[Size, Size]) -> Server:
    """sizes: those known, so that a hundred thousand servers share a few. Of a cell that is away little is known."""
    size = _size(row["flavor"]) if "vcpus" in row.get("flavor", {}) else None
    return Server(
        id=str(row["id"]),
        project_id=str(row.get("tenant_id", "")),
        user_id=str(row.get("user_id", "")),
        node=str(row.get("OS-EXT-SRV-ATTR:hypervisor_hostname") or ""),
        vm_state=str(row.get("OS-EXT-STS:vm_state", "")),
        busy=row.get("OS-EXT-STS:task_state") is not None or row.get("status") == "UNKNOWN",
        from_volume=not row.get("image"),
        created_at=_moment(row.get("created")),
        size=None if size is None else sizes.setdefault(size, size),
    )


def _size(flavor: Doc) -> Size:
    extra: Any = flavor.get("extra_specs")
    return Size(
        str(flavor.get("original_name", "")), int(flavor["vcpus"]), int(flavor["ram"]), int(flavor["disk"]),
        int(flavor.get("ephemeral") or 0), int(flavor.get("swap") or 0),
        None if extra is None else tuple(sorted(extra.items())),
    )  # fmt: skip


def _moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(str(text)).replace(tzinfo=None) if text else None
