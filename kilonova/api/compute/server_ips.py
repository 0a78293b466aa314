"""/servers/{id}/ips: addresses by network, not hidden while the server is built."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.server_metadata import server_of
from kilonova.api.compute.server_view import addresses_of
from kilonova.core.errors import NotFound
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request

_RULE = "os_compute_api:ips:"
_NO_QUERY = Query(strict="2.102")


class NotOnNetwork(NotFound):
    """The server has no address on a network of that name."""

    code, message = "not_on_network", "Instance is not a member of specified network"


def index(req: Request) -> dict[str, Any]:
    """All addresses."""
    return {"addresses": addresses_of(req.target.server, lean=True)}


def show(req: Request) -> dict[str, Any]:
    """Those on one network."""
    found = addresses_of(req.target.server, lean=True)
    if req.path["id"] not in found:
        raise NotOnNetwork
    return {req.path["id"]: found[req.path["id"]]}


OPS: tuple[Op, ...] = (
    Op("GET", "/servers/{server_id}/ips", index, policy=_RULE + "index", target=server_of, query=_NO_QUERY,
       errors=(404,)),
    Op("GET", "/servers/{server_id}/ips/{id}", show, policy=_RULE + "show", target=server_of, query=_NO_QUERY,
       errors=(404,)),
)  # fmt: skip
