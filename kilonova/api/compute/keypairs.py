"""/os-keypairs: a user's keys; an administrator may act for another user from 2.10 on."""

from __future__ import annotations

from typing import Any

from kilonova.compute import keypairs
from kilonova.core import clock
from kilonova.http import paging
from kilonova.http.fields import Enum, Field, Obj, Param, Query, Str, wrap
from kilonova.http.formats import name as is_name
from kilonova.http.formats import register
from kilonova.http.op import Op, Request
from kilonova.http.paging import LIMIT, MARKER
from kilonova.http.versions import Since
from kilonova.http.views import Out, View

_RULE = "os_compute_api:os-keypairs:"
_OLD_CHARS, _NEW_CHARS = " _-", " _-@."


def _named(extra: str) -> Any:
    return lambda text: is_name(text) and all((char.isascii() and char.isalnum()) or char in extra for char in text)


_ENDS = "and must not begin or end with white space."
register("keypair_name", _named(_OLD_CHARS), f"It may hold only letters, digits, spaces, '_' and '-', {_ENDS}")
register(
    "keypair_name_2_92", _named(_NEW_CHARS), f"It may hold only letters, digits, spaces, '_', '-', '@' and '.', {_ENDS}"
)

CREATE = wrap(
    "keypair",
    Obj(
        Field("name", Since(Str(1, 255, "keypair_name"), ("2.92", Str(1, 255, "keypair_name_2_92"))), required=True),
        Field("public_key", Str(), required=Since(False, ("2.92", True))),
        Field("type", Enum("ssh", "x509"), since="2.2"),
        Field("user_id", Str(), since="2.10"),
    ),
)
_USER = Param("user_id", since="2.10")
LIST = Query((_USER, Param("limit", LIMIT.type, since="2.35"), Param("marker", MARKER.type, since="2.35")),
             strict="2.75")  # fmt: skip
ONE = Query((_USER,), strict="2.75")

KEYPAIR = View(
    "keypair",
    Out("name", lambda row, req: row.name),
    Out("public_key", lambda row, req: row.public_key),
    Out("fingerprint", lambda row, req: row.fingerprint),
    Out("type", lambda row, req: row.type, since="2.2"),
    Out("user_id", lambda row, req: row.user_id, at={"show": "2.1", "create": "2.1"}),
    Out("id", lambda row, req: row.id, at={"show": "2.1"}),
    Out("created_at", lambda row, req: clock.raw(row.created_at), at={"show": "2.1"}),
    Out("updated_at", lambda row, req: clock.raw(row.updated_at), at={"show": "2.1"}),
    Out("deleted", lambda row, req: False, at={"show": "2.1"}),
    Out("deleted_at", lambda row, req: None, at={"show": "2.1"}),
)


def whose(req: Request) -> dict[str, Any]:
    """The user whose keys are meant: the caller, or the one named by query or body."""
    body = req.body.get("keypair", {}) if isinstance(req.body, dict) else {}
    user = req.query.get("user_id") or body.get("user_id") or req.ctx.user_id
    return {"user_id": user, "project_id": req.ctx.project_id}


def index(req: Request) -> dict[str, Any]:
    """A user's key pairs, by name."""
    size = paging.page_size(req, req.world.settings.max_limit)
    found = keypairs.page(req.world, req.target["user_id"], size, req.query.get("marker"))
    document = {"keypairs": [{"keypair": one} for one in KEYPAIR.many(found, req, "list")]}
    if not req.flag("paged"):
        return document
    link = paging.next_link(req, "os-keypairs", len(found), size, found[-1].name if found else "")
    return paging.with_links(document, "keypairs_links", link)


def create(req: Request) -> dict[str, Any]:
    """Import a public key, or make a pair."""
    body = req.body["keypair"]
    row, private = keypairs.create(
        req.world, req.ctx, req.target["user_id"], body["name"].strip(), body.get("type", "ssh"),
        body.get("public_key"),
    )  # fmt: skip
    document = KEYPAIR.one(row, req, "create")
    return {"keypair": document | ({"private_key": private} if private else {})}


def show(req: Request) -> dict[str, Any]:
    """One key pair."""
    return {"keypair": KEYPAIR.one(keypairs.find(req.world, req.target["user_id"], req.path["id"]), req, "show")}


def delete(req: Request) -> None:
    """Remove a key pair; servers keep theirs."""
    keypairs.delete(req.world, req.target["user_id"], req.path["id"])


OPS: tuple[Op, ...] = (
    Op(
        "GET", "/os-keypairs", index, policy=_RULE + "index", target=whose, query=LIST,
        errors=Since((), ("2.35", (400,))), flags={"paged": "2.35"},
    ),
    Op(
        "POST", "/os-keypairs", create, policy=_RULE + "create", target=whose, body=CREATE,
        ok=Since(200, ("2.2", 201)), errors=(400, 403, 409),
    ),
    Op("GET", "/os-keypairs/{id}", show, policy=_RULE + "show", target=whose, query=ONE, errors=(404,)),
    Op(
        "DELETE", "/os-keypairs/{id}", delete, policy=_RULE + "delete", target=whose, query=ONE,
        ok=Since(202, ("2.2", 204)), errors=(404,),
    ),
)  # fmt: skip
