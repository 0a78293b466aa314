"""The HTTP side of the volume service: its documents, its paths with and without a project, and how it is made."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

from kilonova.core import clock
from kilonova.core.errors import Unsupported
from kilonova.embedded import dialects
from kilonova.embedded.store import Row, open_tables
from kilonova.embedded.volumes import actions, attachments, quotas, snapshots, types, volumes
from kilonova.embedded.volumes.tables import METADATA
from kilonova.embedded.volumes.world import HOST, ZONE, Images, InvalidInput, World, caller_of, ruler_of
from kilonova.http.app import App, Service
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request
from kilonova.http.versions import Versions, show
from kilonova.sql.engine import Database

# The versions at which something served here changes.
VERSIONS = Versions("volume", {
    "3.0": "The first version.",
    "3.13": "Volumes show group_id.",
    "3.14": "Snapshots show group_snapshot_id.",
    "3.21": "Volumes show provider_id to administrators.",
    "3.27": "Attachments.",
    "3.41": "Snapshots show user_id.",
    "3.44": "Attachments are completed.",
    "3.45": "with_count adds the number of all matches to a list.",
    "3.48": "Volumes show shared_targets and service_uuid.",
    "3.54": "An attachment is made with a mode.",
})  # fmt: skip

EXTENSIONS: dict[str, str] = {
    "os-availability-zone": "AvailabilityZones",
    "os-extended-snapshot-attributes": "ExtendedSnapshotAttributes",
    "os-quota-sets": "Quotas",
    "os-services": "Services",
    "os-types-extra-specs": "TypesExtraSpecs",
    "os-types-manage": "TypesManage",
    "os-used-limits": "UsedLimits",
    "os-vol-host-attr": "VolumeHostAttribute",
    "os-vol-image-meta": "VolumeImageMetadata",
    "os-vol-mig-status-attr": "VolumeMigStatusAttribute",
    "os-vol-tenant-attr": "VolumeTenantAttribute",
    "os-volume-actions": "VolumeActions",
}

NOT_SERVED: tuple[tuple[str, str], ...] = (
    ("/v3/backups", "there is no backup store"),
    ("/v3/os-hosts", "one simulated backend is not a choice of hosts"),
    ("/v3/scheduler-stats", "one simulated backend is not a choice of pools"),
    ("/v3/types/{id}/encryption", "the simulated backend does not encrypt"),
    ("/v3/types/{id}/os-volume-type-access", "types are public or the administrators'"),
    ("/v3/groups", "volumes are not grouped"),
    ("/v3/group_types", "volumes are not grouped"),
    ("/v3/group_snapshots", "volumes are not grouped"),
    ("/v3/consistencygroups", "volumes are not grouped"),
    ("/v3/qos-specs", "the simulated backend has no speed to limit"),
    ("/v3/os-volume-transfer", "volumes stay in their project"),
    ("/v3/volume-transfers", "volumes stay in their project"),
    ("/v3/capabilities", "the simulated backend has none to list"),
    ("/v3/messages", "failures are answered at once"),
    ("/v3/resource_filters", "lists are filtered by the columns shown"),
    ("/v3/default-types", "there is one default type"),
    ("/v3/os-volume-manage", "there are no volumes outside the service"),
)
"""What Cinder has and this service does not, and why; these paths answer 501. Other unknown paths answer 404."""

NOT_SERVED_ACTIONS: tuple[tuple[str, str], ...] = (
    ("os-retype", "volumes keep their type"),
    ("os-migrate_volume", "there is one simulated backend"),
    ("os-migrate_volume_completion", "there is one simulated backend"),
    ("os-volume_upload_image", "the simulated backend holds no bytes"),
    ("os-initialize_connection", "hosts connect by attachments"),
    ("os-terminate_connection", "hosts connect by attachments"),
    ("os-reimage", "the simulated backend holds no bytes"),
    ("os-extend_volume_completion", "volumes are extended at once"),
    ("revert", "the simulated backend holds no bytes"),
)
"""Actions that Cinder has and this service does not; they answer 501."""


class NotServed(Unsupported):
    code, message = "not_served", "The embedded volume service does not have {what}: {why}."


# -- documents -----------------------------------------------------------------------------------------------------


_MEDIA = "application/vnd.openstack.volume+json;version=3"


def _version(req: Request) -> Row:
    links = [{"rel": "self", "href": f"{req.base_url}/v3/"},
             {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"}]  # fmt: skip
    return {"id": "v3.0", "status": "CURRENT", "version": show(VERSIONS.maximum), "min_version": show(VERSIONS.minimum),
            "updated": "2026-01-01T00:00:00Z", "links": links,
            "media-types": [{"base": "application/json", "type": _MEDIA}]}  # fmt: skip


def _versions(req: Request) -> Row:
    return {"versions": [_version(req)]}


def _zones(req: Request) -> Row:
    return {"availabilityZoneInfo": [{"zoneName": ZONE, "zoneState": {"available": True}}]}


def _services(req: Request) -> Row:
    ruler_of(req, "volume_extension:services:index")
    now = clock.raw(clock.utcnow())
    known = (("cinder-scheduler", "kilonova"), ("cinder-volume", HOST.partition("#")[0]))
    rows = [{"binary": binary, "host": host, "zone": ZONE, "status": "enabled", "state": "up", "updated_at": now,
             "disabled_reason": None} for binary, host in known]  # fmt: skip
    wanted = {name: req.query[name][-1] for name in ("binary", "host") if name in req.query}
    return {"services": [row for row in rows if all(row[name] == value for name, value in wanted.items())]}


def _extensions(req: Request) -> Row:
    return {"extensions": [{"alias": alias, "name": name, "description": name, "links": [],
                            "updated": "2015-01-01T00:00:00+00:00"} for alias, name in EXTENSIONS.items()]}  # fmt: skip


def _refuse(what: str, why: str) -> Callable[[Request], Any]:
    def handler(req: Request) -> Any:
        raise NotServed(what=what, why=why)

    return handler


_DOCUMENTS: tuple[Op, ...] = (
    Op("GET", "/os-availability-zone", _zones),
    Op("GET", "/os-services", _services, query=Query(open=True)),
    Op("GET", "/extensions", _extensions),
    *(Op("POST", "/volumes/{id}/action", _refuse(name, why), action=name) for name, why in NOT_SERVED_ACTIONS),
    *(Op(method, path.removeprefix("/v3") + rest, _refuse(path, why)) for path, why in NOT_SERVED
      for method in ("GET", "POST", "PUT", "DELETE") for rest in ("", "/{_a}", "/{_a}/{_b}")),
)  # fmt: skip


# -- the application -----------------------------------------------------------------------------------------------


def _owned(op: Op) -> Op:
    """The same operation under `/v3/{project}/`, for the caller's own project; services act for any project."""

    def handler(req: Request) -> Any:
        project = req.path["_project"]
        if project != (req.ctx.project_id or ""):
            if not caller_of(req).service:
                raise InvalidInput("Malformed request url: the project in the URL is not the token's.")
            req.ctx = copy(req.ctx)
            req.ctx.project_id = project
        return op.handler(req)

    return replace(op, path="/v3/{_project}" + op.path, handler=handler)


_SERVED: tuple[Op, ...] = (
    *volumes.OPS, *actions.OPS, *attachments.OPS, *snapshots.OPS, *types.OPS, *quotas.OPS, *_DOCUMENTS,
)  # fmt: skip
OPS: tuple[Op, ...] = (
    *(Op("GET", path, _versions, ok=300, auth=False) for path in ("", "/")),
    *(Op("GET", path, _versions, auth=False) for path in ("/v3", "/v3/")),
    *(replace(op, path="/v3" + op.path) for op in _SERVED),
    *(_owned(op) for op in _SERVED),
)


def make_app(database: Database, *, images: Images) -> App:
    """The volume service on a database; creates its tables and first types. `images` looks images up as the caller."""
    open_tables(database, METADATA)
    types.bootstrap(database)
    return App(Service(name="volume", ops=OPS, world=World(database, images), dialect=dialects.VOLUMES,
                       versions=VERSIONS))  # fmt: skip
