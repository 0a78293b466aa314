"""Volumes (Cinder v3): volumes, attachments, snapshots, types.

Every method takes the request's context. With the user's token in it, its project stands in the address. Work that
came over the bus has none and goes on with this service's token, without a project in the address; only a new volume
is then addressed in the user's project, because it belongs there: the embedded service lets services do that, Cinder
answers 400. Attachments need 3.44.
"""

from __future__ import annotations

from typing import Any, Protocol

from kilonova.clients.rest import Doc, Errors, QuotaExceeded, RestClient, query, segment
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, NotFound

VERSION = "3.44"


class VolumeNotFound(NotFound):
    code, message = "volume_not_found", "Volume {volume} could not be found."


class VolumeUnusable(Conflict):
    code, message = "volume_unusable", "Volume {volume} cannot be used now: {reason}"


class AttachmentNotFound(NotFound):
    code, message = "attachment_not_found", "Volume attachment {attachment} could not be found."


class SnapshotNotFound(NotFound):
    code, message = "snapshot_not_found", "Snapshot {snapshot} could not be found."


class VolumeTypeNotFound(NotFound):
    code, message = "volume_type_not_found", "Volume type {volume_type} could not be found."


class VolumeQuotaExceeded(QuotaExceeded):
    code, message = "volume_over_quota", "A quota of the volume service is exceeded: {reason}"


class Volumes(Protocol):
    """What compute needs of the volume service."""

    def show(self, ctx: Context | None, volume: str) -> Doc: ...

    def list_volumes(self, ctx: Context | None, **filters: Any) -> list[Doc]: ...

    def create(self, ctx: Context | None, *, size: int, **fields: Any) -> Doc: ...

    def delete(self, ctx: Context | None, volume: str, *, cascade: bool = False, force: bool = False) -> bool: ...

    def action(self, ctx: Context | None, volume: str, name: str, body: Doc | None = None) -> Doc | None: ...

    def reserve(self, ctx: Context | None, volume: str) -> None: ...

    def unreserve(self, ctx: Context | None, volume: str) -> None: ...

    def begin_detaching(self, ctx: Context | None, volume: str) -> None: ...

    def roll_detaching(self, ctx: Context | None, volume: str) -> None: ...

    def set_metadata(self, ctx: Context | None, volume: str, metadata: dict[str, str]) -> dict[str, str]: ...

    def list_attachments(self, ctx: Context | None, **filters: Any) -> list[Doc]: ...

    def show_attachment(self, ctx: Context | None, attachment: str) -> Doc: ...

    def create_attachment(
        self, ctx: Context | None, volume: str, server: str, *, connector: Doc | None = None, mode: str | None = None
    ) -> Doc: ...

    def update_attachment(self, ctx: Context | None, attachment: str, connector: Doc) -> Doc: ...

    def complete_attachment(self, ctx: Context | None, attachment: str) -> None: ...

    def delete_attachment(self, ctx: Context | None, attachment: str) -> bool: ...

    def show_snapshot(self, ctx: Context | None, snapshot: str) -> Doc: ...

    def list_snapshots(self, ctx: Context | None, **filters: Any) -> list[Doc]: ...

    def create_snapshot(self, ctx: Context | None, volume: str, *, force: bool = False, **fields: Any) -> Doc: ...

    def delete_snapshot(self, ctx: Context | None, snapshot: str) -> bool: ...

    def list_types(self, ctx: Context | None) -> list[Doc]: ...

    def show_type(self, ctx: Context | None, volume_type: str) -> Doc: ...

    def absolute_limits(self, ctx: Context | None) -> Doc: ...


class HttpVolumes:
    """The volume service over its REST API; the endpoint is `…/v3`, the project is added per call."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def show(self, ctx: Context | None, volume: str) -> Doc:
        """One volume. VolumeNotFound."""
        return self._one(ctx, "volume", volume, {404: VolumeNotFound}, volume=volume)

    def list_volumes(self, ctx: Context | None, **filters: Any) -> list[Doc]:
        """Volumes with their details, by Cinder's query parameters."""
        return list(self._call(ctx, "GET", "/volumes/detail" + query(_of_project(ctx, filters)))["volumes"])

    def create(self, ctx: Context | None, *, size: int, **fields: Any) -> Doc:
        """A volume being created (size in GiB; other fields as Cinder names them; None is left out).

        SnapshotNotFound, VolumeQuotaExceeded, RemoteInvalid.
        """
        given = {key: value for key, value in fields.items() if value is not None}
        errors: Errors = {413: VolumeQuotaExceeded, 404: VolumeNotFound}
        source = given.get("source_volid") or given.get("snapshot_id") or given.get("imageRef")
        path = "/volumes" if ctx is None or ctx.auth_token else f"/{segment(ctx.project_id)}/volumes"
        found = self._call(ctx, "POST", path, {"volume": {"size": size, **given}}, errors, volume=source)
        return dict(found["volume"])

    def delete(self, ctx: Context | None, volume: str, *, cascade: bool = False, force: bool = False) -> bool:
        """Begin to delete; False when it was not there. VolumeUnusable while it is in use."""
        flags = query({"cascade": cascade or None, "force": force or None})
        return self._delete(ctx, f"/volumes/{segment(volume)}{flags}", _VOLUME, volume=volume)

    def action(self, ctx: Context | None, volume: str, name: str, body: Doc | None = None) -> Doc | None:
        """One of the volume's actions (`os-extend` …). VolumeNotFound, VolumeUnusable."""
        path = f"/volumes/{segment(volume)}/action"
        found: Doc | None = self._call(ctx, "POST", path, {name: body}, _VOLUME, volume=volume)
        return found

    def reserve(self, ctx: Context | None, volume: str) -> None:
        """available → attaching, so that nobody else takes it."""
        self.action(ctx, volume, "os-reserve")

    def unreserve(self, ctx: Context | None, volume: str) -> None:
        """Undo `reserve`."""
        self.action(ctx, volume, "os-unreserve")

    def begin_detaching(self, ctx: Context | None, volume: str) -> None:
        """in-use → detaching."""
        self.action(ctx, volume, "os-begin_detaching")

    def roll_detaching(self, ctx: Context | None, volume: str) -> None:
        """detaching → in-use."""
        self.action(ctx, volume, "os-roll_detaching")

    def set_metadata(self, ctx: Context | None, volume: str, metadata: dict[str, str]) -> dict[str, str]:
        """Add or change metadata keys; all of them afterwards."""
        path = f"/volumes/{segment(volume)}/metadata"
        return dict(self._call(ctx, "POST", path, {"metadata": metadata}, _VOLUME, volume=volume)["metadata"])

    def list_attachments(self, ctx: Context | None, **filters: Any) -> list[Doc]:
        """Attachments with their details (`volume_id`, `instance_id`)."""
        return list(self._call(ctx, "GET", "/attachments/detail" + query(_of_project(ctx, filters)))["attachments"])

    def show_attachment(self, ctx: Context | None, attachment: str) -> Doc:
        """One attachment with its connection_info. AttachmentNotFound."""
        return self._one(ctx, "attachment", attachment, {404: AttachmentNotFound}, attachment=attachment)

    def create_attachment(
        self, ctx: Context | None, volume: str, server: str, *, connector: Doc | None = None, mode: str | None = None
    ) -> Doc:
        """Reserve the volume for a server; with a connector also connect it. VolumeNotFound, VolumeUnusable."""
        body: Doc = {"volume_uuid": volume, "instance_uuid": server}
        if connector is not None:
            body["connector"] = connector
        version = VERSION
        if mode is not None:
            body["mode"], version = mode, "3.54"
        found = self._call(ctx, "POST", "/attachments", {"attachment": body}, _VOLUME, version, volume=volume)
        return dict(found["attachment"])

    def update_attachment(self, ctx: Context | None, attachment: str, connector: Doc) -> Doc:
        """Connect a reserved attachment to a host; its connection_info. AttachmentNotFound."""
        path = f"/attachments/{segment(attachment)}"
        body = {"attachment": {"connector": connector}}
        found = self._call(ctx, "PUT", path, body, {404: AttachmentNotFound}, attachment=attachment)
        return dict(found["attachment"])

    def complete_attachment(self, ctx: Context | None, attachment: str) -> None:
        """The guest has it: the volume becomes in-use. AttachmentNotFound."""
        path = f"/attachments/{segment(attachment)}/action"
        self._call(ctx, "POST", path, {"os-complete": None}, {404: AttachmentNotFound}, attachment=attachment)

    def delete_attachment(self, ctx: Context | None, attachment: str) -> bool:
        """Give the volume back; False when the attachment was not there."""
        return self._delete(ctx, f"/attachments/{segment(attachment)}", {})

    def show_snapshot(self, ctx: Context | None, snapshot: str) -> Doc:
        """One snapshot. SnapshotNotFound."""
        return self._one(ctx, "snapshot", snapshot, {404: SnapshotNotFound}, snapshot=snapshot)

    def list_snapshots(self, ctx: Context | None, **filters: Any) -> list[Doc]:
        """Snapshots with their details."""
        return list(self._call(ctx, "GET", "/snapshots/detail" + query(_of_project(ctx, filters)))["snapshots"])

    def create_snapshot(self, ctx: Context | None, volume: str, *, force: bool = False, **fields: Any) -> Doc:
        """A snapshot being created. VolumeNotFound, VolumeUnusable, VolumeQuotaExceeded."""
        body = {"snapshot": {"volume_id": volume, "force": force, **fields}}
        errors = {**_VOLUME, 413: VolumeQuotaExceeded}
        return dict(self._call(ctx, "POST", "/snapshots", body, errors, volume=volume)["snapshot"])

    def delete_snapshot(self, ctx: Context | None, snapshot: str) -> bool:
        """Begin to delete; False when it was not there."""
        return self._delete(ctx, f"/snapshots/{segment(snapshot)}", {})

    def list_types(self, ctx: Context | None) -> list[Doc]:
        """Volume types."""
        return list(self._call(ctx, "GET", "/types")["volume_types"])

    def show_type(self, ctx: Context | None, volume_type: str) -> Doc:
        """One type by id, or `default`. VolumeTypeNotFound."""
        path = f"/types/{segment(volume_type)}"
        errors = {404: VolumeTypeNotFound}
        return dict(self._call(ctx, "GET", path, None, errors, volume_type=volume_type)["volume_type"])

    def absolute_limits(self, ctx: Context | None) -> Doc:
        """maxTotal… and total…Used of the project."""
        return dict(self._call(ctx, "GET", "/limits")["limits"]["absolute"])

    def _call(
        self, ctx: Context | None, method: str, path: str, body: Any = None, errors: Errors | None = None,
        version: str = VERSION, **details: Any,
    ) -> Any:  # fmt: skip
        rest = self._rest.as_user(ctx)
        return rest.call(method, _scoped(ctx, path), json=body, errors=errors, version=version, **details)

    def _one(self, ctx: Context | None, noun: str, key: str, errors: Errors, **details: Any) -> Doc:
        return dict(self._call(ctx, "GET", f"/{noun}s/{segment(key)}", None, errors, **details)[noun])

    def _delete(self, ctx: Context | None, path: str, errors: Errors, **details: Any) -> bool:
        rest = self._rest.as_user(ctx)
        response = rest.request("DELETE", _scoped(ctx, path), version=VERSION)
        if response.status == 404:
            return False
        rest.expect(response, errors, **details)
        return True


_VOLUME: Errors = {404: VolumeNotFound, 400: VolumeUnusable, 409: VolumeUnusable}


def _scoped(ctx: Context | None, path: str) -> str:
    """With the user's own project where the user's own token goes along."""
    return f"/{segment(ctx.project_id)}{path}" if ctx is not None and ctx.auth_token and ctx.project_id else path


def _of_project(ctx: Context | None, filters: Doc) -> Doc:
    """The filters that keep a service to the rows of the project it works for."""
    if ctx is None or ctx.auth_token or not ctx.project_id:
        return filters
    return {"all_tenants": True, "project_id": ctx.project_id, **filters}
