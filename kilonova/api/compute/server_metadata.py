"""/servers/{id}/metadata: free key-value pairs."""

from __future__ import annotations

from typing import Any

from kilonova.compute import labels, lookup
from kilonova.compute.lookup import Found
from kilonova.core.errors import Invalid
from kilonova.http.fields import METADATA, METADATA_KEY, Field, Map, Obj, Query, Str
from kilonova.http.op import Op, Request

_RULE = "os_compute_api:server-metadata:"
_ALL = Obj(Field("metadata", METADATA, required=True))
_ITEM = Obj(Field("meta", Map(METADATA_KEY, Str(max=255), 1, 1), required=True))
_NO_QUERY = Query(strict="2.102")


class KeyMismatch(Invalid):
    """Body and URL name different keys."""

    code, message = "key_mismatch", "Request body and URI mismatch"


def server_of(req: Request) -> Found:
    """The server in the path."""
    return lookup.find(req.world, req.ctx, req.path["server_id"])


def index(req: Request) -> dict[str, Any]:
    """All pairs."""
    return {"metadata": req.target.server.metadata}


def create(req: Request) -> dict[str, Any]:
    """Merge pairs into those there are."""
    return {"metadata": labels.change_metadata(req.world, req.ctx, req.target, add=req.body["metadata"])}


def update_all(req: Request) -> dict[str, Any]:
    """Replace all pairs."""
    changed = labels.change_metadata(req.world, req.ctx, req.target, replace=True, add=req.body["metadata"])
    return {"metadata": changed}


def show(req: Request) -> dict[str, Any]:
    """One pair."""
    key, metadata = req.path["id"], req.target.server.metadata
    if key not in metadata:
        raise labels.MetadataItemNotFound
    return {"meta": {key: metadata[key]}}


def update(req: Request) -> dict[str, Any]:
    """Set one pair."""
    if req.path["id"] not in req.body["meta"]:
        raise KeyMismatch
    labels.change_metadata(req.world, req.ctx, req.target, add=req.body["meta"])
    return {"meta": req.body["meta"]}


def delete(req: Request) -> None:
    """Remove one pair."""
    labels.change_metadata(req.world, req.ctx, req.target, remove=req.path["id"])


def _op(method: str, item: bool, handler: Any, rule: str, **more: Any) -> Op:
    path = "/servers/{server_id}/metadata" + ("/{id}" if item else "")
    return Op(method, path, handler, policy=_RULE + rule, target=server_of, **more)


OPS: tuple[Op, ...] = (
    _op("GET", False, index, "index", query=_NO_QUERY, errors=(404,)),
    _op("POST", False, create, "create", body=_ALL, errors=(403, 404, 409)),
    _op("PUT", False, update_all, "update_all", body=_ALL, errors=(403, 404, 409)),
    _op("GET", True, show, "show", query=_NO_QUERY, errors=(404,)),
    _op("PUT", True, update, "update", body=_ITEM, errors=(400, 403, 404, 409)),
    _op("DELETE", True, delete, "delete", ok=204, errors=(404, 409)),
)
