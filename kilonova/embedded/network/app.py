"""The HTTP side of the network service: its operations, derived from the nouns, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from kilonova.embedded import dialects
from kilonova.embedded.network import errors, groups, listing, nouns, quotas, routers, topology
from kilonova.embedded.network.events import Notifier, Outbox
from kilonova.embedded.network.floating import FLOATING_IP
from kilonova.embedded.network.groups import GROUP, RULE
from kilonova.embedded.network.networks import NETWORK, SUBNET
from kilonova.embedded.network.nouns import Caller, Noun, World
from kilonova.embedded.network.ports import PORT
from kilonova.embedded.network.routers import ROUTER
from kilonova.embedded.network.tables import METADATA
from kilonova.embedded.store import open_tables
from kilonova.http.app import App, Service
from kilonova.http.fields import Any_, Field, Obj, Query
from kilonova.http.op import Op, Request
from kilonova.sql.engine import Database

NOUNS: tuple[Noun, ...] = (NETWORK, SUBNET, PORT, ROUTER, FLOATING_IP, GROUP, RULE)

# alias: name. Only what is true of this service; clients and suites decide by it what they try.
EXTENSIONS: dict[str, str] = {
    "allowed-address-pairs": "Allowed Address Pairs",
    "auto-allocated-topology": "Auto Allocated Topology Services",
    "binding": "Port Binding",
    "external-net": "Neutron external network",
    "extra_dhcp_opt": "Neutron Extra DHCP options",
    "extraroute": "Neutron Extra Route",
    "ext-gw-mode": "Neutron L3 Configurable external gateway mode",
    "filter-validation": "Filter parameters validation",
    "net-mtu": "Network MTU",
    "net-mtu-writable": "Network MTU (writable)",
    "pagination": "Pagination support",
    "port-security": "Port Security",
    "project-id": "project_id field enabled",
    "provider": "Provider Network",
    "quota_details": "Quota details management support",
    "quotas": "Quota management support",
    "router": "Neutron L3 Router",
    "security-group": "security-group",
    "security-groups-normalized-cidr": "Normalized CIDR field for security group rules",
    "sorting": "Sorting support",
    "standard-attr-description": "standard-attr-description",
    "standard-attr-revisions": "Resource revision numbers",
    "standard-attr-timestamp": "Resource timestamps",
    "stateful-security-group": "Stateful security group",
}

NOT_SERVED: tuple[tuple[str, str], ...] = (
    ("/v2.0/agents", "the network of simulated guests has no agents"),
    ("/v2.0/routers/{id}/l3-agents", "the network of simulated guests has no agents"),
    ("/v2.0/networks/{id}/dhcp-agents", "the network of simulated guests has no agents"),
    ("/v2.0/availability_zones", "networks are not placed in zones"),
    ("/v2.0/trunks", "no trunk ports: the alias trunk is not listed"),
    ("/v2.0/qos", "no quality of service: the alias qos is not listed"),
    ("/v2.0/ports/{id}/bindings", "one binding a port: the alias binding-extended is not listed"),
    ("/v2.0/subnetpools", "ranges are given with the subnet"),
    ("/v2.0/address-scopes", "no subnet pools, so no scopes of them"),
    ("/v2.0/address-groups", "rules name a range or a group"),
    ("/v2.0/rbac-policies", "a network is shared with everybody or with nobody"),
    ("/v2.0/segments", "a network has one segment"),
    ("/v2.0/network-ip-availabilities", "use is seen by listing ports"),
    ("/v2.0/flavors, /v2.0/service_profiles, /v2.0/service-providers", "there is one implementation of everything"),
    ("/v2.0/metering, /v2.0/vpn, /v2.0/bgp-speakers, /v2.0/fwaas, /v2.0/log", "outside what compute uses"),
    ("/v2.0/floatingips/{id}/port_forwardings", "a floating IP leads to one address as a whole"),
    ("/v2.0/{resource}/{id}/tags", "resources have no tags: the alias standard-attr-tag is not listed"),
    ("/v2.0/default-security-group-rules", "the default group begins with Neutron's four rules"),
)
"""What Neutron has and this service does not, and why; these paths answer 404."""


# -- who asks ----------------------------------------------------------------------------------------------------

_WRITERS = frozenset(("member", "manager", "admin", "service"))


def caller_of(req: Request) -> Caller:
    """The caller with the rights that the roles give: admin and service everything, reader only to look."""
    roles = {str(role).lower() for role in req.ctx.roles or ()}
    service = "service" in roles or "service" in (req.ctx.service_roles or ())
    return Caller(req.world, req.ctx.project_id, privileged=service or "admin" in roles, service=service,
                  writer=service or not roles.isdisjoint(_WRITERS))  # fmt: skip


# -- the nouns' operations -----------------------------------------------------------------------------------------


def _list(noun: Noun) -> Callable[[Request], dict[str, Any]]:
    def handler(req: Request) -> dict[str, Any]:
        caller = caller_of(req)
        if noun in (GROUP, RULE):
            asked = [*req.query.get("project_id", ()), *req.query.get("tenant_id", ())]
            groups.ensure_default(caller, asked[0] if len(asked) == 1 else None)
        fields = _fields(req)
        rows, more = listing.listed(caller, noun, req.query, fields)
        document: dict[str, Any] = {noun.plural: [noun.view(row, privileged=caller.privileged, fields=fields)
                                                  for row in rows]}  # fmt: skip
        if more:
            document[f"{noun.plural}_links"] = _next(req, rows[-1]["id"]) if rows else []
        return document

    return handler


def _fields(req: Request) -> tuple[str, ...]:
    return tuple(name for value in req.query.get("fields", ()) for name in value.split(",") if name)


def _next(req: Request, marker: str) -> list[dict[str, str]]:
    query = [pair for pair in parse_qsl(req.environ.get("QUERY_STRING", ""), keep_blank_values=True)
             if pair[0] != "marker"]  # fmt: skip
    query.append(("marker", marker))
    return [{"rel": "next", "href": f"{req.base_url}{req.path_info}?{urlencode(query)}"}]


def _create(noun: Noun) -> Callable[[Request], dict[str, Any]]:
    def handler(req: Request) -> dict[str, Any]:
        caller = caller_of(req)
        if noun.plural in req.body and isinstance(req.body[noun.plural], list):
            rows = nouns.create(caller, noun, req.body[noun.plural], quotas.check)
            return {noun.plural: [noun.view(row, privileged=caller.privileged) for row in rows]}
        if noun.name not in req.body:
            raise errors.HTTPBadRequest(f"The body must have the key '{noun.name}'.")
        rows = nouns.create(caller, noun, [req.body[noun.name]], quotas.check)
        return {noun.name: noun.view(rows[0], privileged=caller.privileged)}

    return handler


def _show(noun: Noun) -> Callable[[Request], dict[str, Any]]:
    def handler(req: Request) -> dict[str, Any]:
        caller = caller_of(req)
        row = nouns.show(caller, noun, req.path["id"])
        return {noun.name: noun.view(row, privileged=caller.privileged, fields=_fields(req))}

    return handler


def _update(noun: Noun) -> Callable[[Request], dict[str, Any]]:
    def handler(req: Request) -> dict[str, Any]:
        caller = caller_of(req)
        row = nouns.update(caller, noun, req.path["id"], req.body[noun.name])
        return {noun.name: noun.view(row, privileged=caller.privileged)}

    return handler


def _delete(noun: Noun) -> Callable[[Request], None]:
    return lambda req: nouns.delete(caller_of(req), noun, req.path["id"])


_QUERY = Query(open=True)
_OPEN = Obj(open=True)


def _ops_of(noun: Noun) -> tuple[Op, ...]:
    many = "/v2.0/" + noun.plural.replace("_", "-")
    one, named = many + "/{id}", Obj(Field(noun.name, Any_, required=True), open=True)
    rows = (
        Op("GET", many, _list(noun), query=_QUERY),
        Op("POST", many, _create(noun), body=_OPEN, ok=201, errors=(409,)),
        Op("GET", one, _show(noun), query=_QUERY),
        Op("PUT", one, _update(noun), body=named, errors=(409,)),
        Op("DELETE", one, _delete(noun), ok=204, errors=(409,)),
    )
    return tuple(op for op in rows if op.method != "PUT" or noun is not RULE)


# -- everything else -----------------------------------------------------------------------------------------------


def _versions(req: Request) -> dict[str, Any]:
    links = [{"rel": "self", "href": f"{req.base_url}/v2.0/"}]
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}


def _resources(req: Request) -> dict[str, Any]:
    return {"resources": [
        {"name": noun.name, "collection": noun.plural,
         "links": [{"rel": "self", "href": f"{req.base_url}/v2.0/{noun.plural.replace('_', '-')}"}]}
        for noun in NOUNS
    ]}  # fmt: skip


def _extension(alias: str) -> dict[str, Any]:
    return {"alias": alias, "name": EXTENSIONS[alias], "description": EXTENSIONS[alias], "links": [],
            "updated": "2015-01-01T00:00:00-00:00"}  # fmt: skip


def _extension_shown(req: Request) -> dict[str, Any]:
    if req.path["alias"] not in EXTENSIONS:
        raise errors.ExtensionNotFound(id=req.path["alias"])
    return {"extension": _extension(req.path["alias"])}


def _topology(req: Request) -> dict[str, Any]:
    caller, project = caller_of(req), req.path["project"]
    if "dry-run" in _fields(req):
        topology.can_allocate(caller, project)
        found = "dry-run=pass"
    else:
        found = topology.allocate(caller, project)
    return {"auto_allocated_topology": {"id": found, "tenant_id": project, "project_id": project}}


_QUOTA = Obj(Field("quota", Obj(open=True), required=True))
OPS: tuple[Op, ...] = (
    *(Op("GET", path, _versions, auth=False) for path in ("", "/")),
    *(Op("GET", path, _resources) for path in ("/v2.0", "/v2.0/")),
    Op("GET", "/v2.0/extensions", lambda req: {"extensions": [_extension(alias) for alias in EXTENSIONS]}),
    Op("GET", "/v2.0/extensions/{alias}", _extension_shown),
    *(op for noun in NOUNS for op in _ops_of(noun)),
    Op("PUT", "/v2.0/routers/{id}/add_router_interface",
       lambda req: routers.add_interface(caller_of(req), req.path["id"], req.body), body=_OPEN, errors=(409,)),
    Op("PUT", "/v2.0/routers/{id}/remove_router_interface",
       lambda req: routers.remove_interface(caller_of(req), req.path["id"], req.body), body=_OPEN, errors=(409,)),
    Op("GET", "/v2.0/quotas", lambda req: {"quotas": quotas.listed(caller_of(req))}),
    Op("GET", "/v2.0/quotas/{project}", lambda req: {"quota": quotas.shown(caller_of(req), req.path["project"])}),
    Op("GET", "/v2.0/quotas/{project}/default", lambda req: {"quota": quotas.DEFAULTS}),
    *(Op("GET", "/v2.0/quotas/{project}/" + last,
         lambda req: {"quota": quotas.details(caller_of(req), req.path["project"])})
      for last in ("details", "details.json")),
    Op("PUT", "/v2.0/quotas/{project}",
       lambda req: {"quota": quotas.change(caller_of(req), req.path["project"], req.body["quota"])},
       body=_QUOTA, errors=(409,)),
    Op("DELETE", "/v2.0/quotas/{project}", lambda req: quotas.reset(caller_of(req), req.path["project"]), ok=204),
    Op("GET", "/v2.0/auto-allocated-topology/{project}", _topology, query=_QUERY, errors=(409,)),
    Op("DELETE", "/v2.0/auto-allocated-topology/{project}",
       lambda req: topology.deallocate(caller_of(req), req.path["project"]), ok=204, errors=(409,)),
)  # fmt: skip


# -- the application -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NetworkApp:
    """The WSGI callable; between `start` and `stop` it also tells compute of what happens to ports."""

    app: App
    database: Database
    outbox: Outbox

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self.app(environ, start_response)

    def start(self) -> None:
        """Begin to deliver events."""
        self.outbox.start(self.database)

    def stop(self) -> None:
        """Deliver what is waiting and stop."""
        self.outbox.stop()


def make_app(database: Database, *, notifier: Notifier, auto_cidr: str = topology.AUTO_CIDR) -> NetworkApp:
    """The network service on a database; creates its tables. Events go to `notifier` once it is started."""
    open_tables(database, METADATA)
    outbox = Outbox(notifier)
    service = Service(name="network", ops=OPS, world=World(database, outbox.put, auto_cidr), dialect=dialects.NETWORK)
    return NetworkApp(App(service), database, outbox)
