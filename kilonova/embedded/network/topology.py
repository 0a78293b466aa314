"""Topologies that the service makes itself: the first cloud's networks, and a project's automatic one."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from kilonova.embedded.network import errors
from kilonova.embedded.network import routers as router_rules
from kilonova.embedded.network.groups import default_of
from kilonova.embedded.network.networks import NETWORK, SUBNET
from kilonova.embedded.network.nouns import Caller, World, make, only_writers
from kilonova.embedded.network.routers import ROUTER
from kilonova.embedded.network.tables import METADATA, milestones, networks, ports, routers, topologies
from kilonova.embedded.store import Row, open_tables, transact
from kilonova.sql.engine import Database

_FIRST = "bootstrap"
AUTO_CIDR = "10.20.30.0/24"
"""The range of every automatic topology: each has a router of its own, so they may be equal."""



def bootstrap(
    database: Database,
    *,
    admin_project: str,
    demo_project: str,
    private_cidr: str = "10.0.0.0/24",
    public_cidr: str = "172.24.4.0/24",
) -> None:
    """The networks of a new cloud, made once and never again, whatever becomes of them.

    `public` is external. `private` belongs to the demo project and is shared, so that it is the one network that a
    server gets which names none, in every project. `router1` joins them; both projects get their default group.
    """
    open_tables(database, METADATA)
    world = World(database, lambda events: None, AUTO_CIDR)
    caller = Caller(world, admin_project, privileged=True, service=True, writer=True)

    def work(c: Connection) -> None:
        if milestones.get(c, _FIRST) is not None:
            return
        milestones.insert(c, {"name": _FIRST})
        public = make(c, caller, NETWORK, name="public", router__external=True, is_default=True,
                      port_security_enabled=False)  # fmt: skip
        make(c, caller, SUBNET, name="public-subnet", network_id=public["id"], ip_version=4, cidr=public_cidr,
             enable_dhcp=False)  # fmt: skip
        private = make(c, caller, NETWORK, name="private", shared=True, project_id=demo_project)
        subnet = make(c, caller, SUBNET, name="private-subnet", network_id=private["id"], ip_version=4,
                      cidr=private_cidr, project_id=demo_project)  # fmt: skip
        _join(c, caller, "router1", demo_project, public, subnet)
        for project in (admin_project, demo_project):
            default_of(c, project)

    transact(database, work)


def _join(c: Connection, caller: Caller, name: str, project: str, public: Row, subnet: Row) -> Row:
    gateway = {"network_id": public["id"]}
    router = make(c, caller, ROUTER, name=name, project_id=project, external_gateway_info=gateway)
    router_rules.connect_subnet(c, caller, router, subnet["id"])
    return router


# -- automatic topologies ------------------------------------------------------------------------------------------


def _public(c: Connection) -> Row:
    found = networks.find(c, {"external": True, "is_default": True})
    if not found:
        raise errors.AutoAllocationFailure(reason="no external network is the default one (is_default)")
    return found[0]


def _may(caller: Caller, project: str) -> None:
    if not caller.privileged and project != caller.project_id:
        raise errors.PolicyNotAuthorized(action="using the topology of another project")


def can_allocate(caller: Caller, project: str) -> None:
    """Raises AutoAllocationFailure unless a topology could be made for the project; makes nothing."""
    _may(caller, project)
    with caller.world.database.read() as c:
        _public(c)


def allocate(caller: Caller, project: str) -> str:
    """The id of the network of the project's automatic topology, which is made when there is none.

    Raises AutoAllocationFailure, PolicyNotAuthorized.
    """
    _may(caller, project)
    only_writers(caller, NETWORK)
    own = Caller(caller.world, project, privileged=True, service=True, writer=True)

    def work(c: Connection) -> str:
        row = topologies.get(c, project)
        if row is not None:
            return str(row["network_id"])
        public = _public(c)
        network = make(c, own, NETWORK, name="auto_allocated_network")
        subnet = make(c, own, SUBNET, name="auto_allocated_subnet_v4", network_id=network["id"], ip_version=4,
                      cidr=caller.world.auto_cidr)  # fmt: skip
        router = _join(c, own, "auto_allocated_router", project, public, subnet)
        topologies.insert(c, {"project_id": project, "network_id": network["id"], "router_id": router["id"]})
        return str(network["id"])

    return transact(caller.world.database, work)


def deallocate(caller: Caller, project: str) -> None:
    """Remove the project's automatic topology, if it has one. Raises NetworkInUse, PolicyNotAuthorized."""
    _may(caller, project)
    only_writers(caller, NETWORK)

    def work(c: Connection) -> None:
        row = topologies.get(c, project)
        if row is None:
            return
        own = Caller(caller.world, project, privileged=True, service=True, writer=True)
        router = routers.get(c, row["router_id"]) if row["router_id"] else None
        topologies.delete(c, project)
        if router is not None:
            for port in router_rules.interfaces(c, router["id"]):
                ports.delete(c, port["id"])
            ROUTER.delete(c, own, router, ROUTER)
        network = networks.get(c, row["network_id"])
        if network is not None:
            NETWORK.delete(c, own, network, NETWORK)

    transact(caller.world.database, work)


