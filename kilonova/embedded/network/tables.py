"""The tables of the embedded network service, and the constraints that keep concurrent requests honest.

Two ports can never hold one address (unique per subnet) or one MAC (unique per network); nothing can be added to a
network, subnet or group that another request is deleting (foreign keys). Knows nothing of requests or wire formats.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.embedded.store import Rows
from kilonova.sql.types import Json, Timestamp, Uuid

METADATA = sa.MetaData()


def _flag(name: str, default: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean, nullable=False, default=default)


def _ref(name: str, target: str, *, cascade: bool = False, **how: Any) -> sa.Column[Any]:
    return sa.Column(name, Uuid, sa.ForeignKey(target, ondelete="CASCADE" if cascade else "RESTRICT"), **how)


def _standard(table: str, *columns: Any) -> sa.Table:
    """A noun's table: its own columns after those that every noun has."""
    return sa.Table(
        table,
        METADATA,
        sa.Column("id", Uuid, primary_key=True),
        sa.Column("project_id", sa.String(255), nullable=False, index=True),
        sa.Column("name", sa.String(255), nullable=False, default=""),
        sa.Column("description", sa.String(255), nullable=False, default=""),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Column("revision_number", sa.Integer, nullable=False, default=0),
        *columns,
    )


NETWORKS = _standard(
    "networks",
    _flag("admin_state_up", True),
    sa.Column("status", sa.String(16), nullable=False, default="ACTIVE"),
    _flag("shared"),
    _flag("external"),
    _flag("is_default"),
    _flag("port_security_enabled", True),
    sa.Column("mtu", sa.Integer, nullable=False),
    sa.Column("network_type", sa.String(32)),
    sa.Column("physical_network", sa.String(64)),
    sa.Column("segmentation_id", sa.Integer),
)
SUBNETS = _standard(
    "subnets",
    _ref("network_id", "networks.id", nullable=False, index=True),
    sa.Column("ip_version", sa.Integer, nullable=False),
    sa.Column("cidr", sa.String(64), nullable=False),
    sa.Column("gateway_ip", sa.String(64)),
    sa.Column("allocation_pools", Json, nullable=False),
    _flag("enable_dhcp", True),
    sa.Column("dns_nameservers", Json, nullable=False),
    sa.Column("host_routes", Json, nullable=False),
    sa.Column("ipv6_ra_mode", sa.String(16)),
    sa.Column("ipv6_address_mode", sa.String(16)),
    # Where the search for the next free address begins, as `key_of` writes addresses; None is the first pool's start.
    sa.Column("next_key", sa.String(32)),
)
PORTS = _standard(
    "ports",
    _ref("network_id", "networks.id", nullable=False),
    _flag("admin_state_up", True),
    sa.Column("status", sa.String(16), nullable=False, default="DOWN"),
    sa.Column("mac_address", sa.String(32), nullable=False),
    sa.Column("fixed_ips", Json, nullable=False),
    sa.Column("device_id", sa.String(255), nullable=False, default="", index=True),
    sa.Column("device_owner", sa.String(255), nullable=False, default=""),
    sa.Column("security_groups", Json, nullable=False),
    _flag("port_security_enabled", True),
    sa.Column("allowed_address_pairs", Json, nullable=False),
    sa.Column("extra_dhcp_opts", Json, nullable=False),
    sa.Column("binding_host_id", sa.String(255), nullable=False, default=""),
    sa.Column("binding_vnic_type", sa.String(64), nullable=False, default="normal"),
    sa.Column("binding_profile", Json, nullable=False),
    sa.UniqueConstraint("network_id", "mac_address"),
)
ALLOCATIONS = sa.Table(
    "ip_allocations",
    METADATA,
    _ref("subnet_id", "subnets.id", primary_key=True),
    sa.Column("key", sa.String(32), primary_key=True),
    sa.Column("ip_address", sa.String(64), nullable=False),
    _ref("port_id", "ports.id", cascade=True, nullable=False, index=True),
)
GROUPS = _standard("security_groups", _flag("stateful", True))
RULES = _standard(
    "security_group_rules",
    _ref("security_group_id", "security_groups.id", cascade=True, nullable=False, index=True),
    sa.Column("direction", sa.String(8), nullable=False),
    sa.Column("ethertype", sa.String(8), nullable=False),
    sa.Column("protocol", sa.String(32)),
    sa.Column("port_range_min", sa.Integer),
    sa.Column("port_range_max", sa.Integer),
    sa.Column("remote_ip_prefix", sa.String(64)),
    _ref("remote_group_id", "security_groups.id", cascade=True, index=True),
)
# One default group per project: the key makes two first uses at once create one group.
DEFAULT_GROUPS = sa.Table(
    "default_security_groups",
    METADATA,
    sa.Column("project_id", sa.String(255), primary_key=True),
    _ref("group_id", "security_groups.id", cascade=True, nullable=False, unique=True),
)
PORT_GROUPS = sa.Table(
    "port_security_groups",
    METADATA,
    _ref("port_id", "ports.id", cascade=True, primary_key=True),
    _ref("group_id", "security_groups.id", primary_key=True, index=True),
)
ROUTERS = _standard(
    "routers",
    _flag("admin_state_up", True),
    sa.Column("status", sa.String(16), nullable=False, default="ACTIVE"),
    sa.Column("external_gateway_info", Json),
    sa.Column("routes", Json, nullable=False),
    _ref("gateway_port_id", "ports.id"),
)
FLOATING_IPS = _standard(
    "floating_ips",
    _ref("floating_network_id", "networks.id", nullable=False),
    sa.Column("floating_ip_address", sa.String(64), nullable=False),
    sa.Column("fixed_ip_address", sa.String(64)),
    _ref("port_id", "ports.id", index=True),
    _ref("router_id", "routers.id", index=True),
    sa.Column("status", sa.String(16), nullable=False, default="DOWN"),
    _ref("own_port_id", "ports.id", nullable=False),
    # MariaDB and SQLite take any number of nulls in a unique key, PostgreSQL too.
    sa.UniqueConstraint("port_id", "fixed_ip_address"),
)
QUOTAS = sa.Table(
    "quotas",
    METADATA,
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("limits", Json, nullable=False),
)
TOPOLOGIES = sa.Table(
    "auto_allocated_topologies",
    METADATA,
    sa.Column("project_id", sa.String(255), primary_key=True),
    _ref("network_id", "networks.id", cascade=True, nullable=False),
    _ref("router_id", "routers.id", cascade=True),
)
MILESTONES = sa.Table("milestones", METADATA, sa.Column("name", sa.String(32), primary_key=True))

networks = Rows(NETWORKS)
subnets = Rows(SUBNETS)
ports = Rows(PORTS)
allocations = Rows(ALLOCATIONS, key="port_id")
groups = Rows(GROUPS)
rules = Rows(RULES)
default_groups = Rows(DEFAULT_GROUPS, key="project_id")
port_groups = Rows(PORT_GROUPS, key="port_id")
routers = Rows(ROUTERS)
floating_ips = Rows(FLOATING_IPS)
quotas = Rows(QUOTAS, key="project_id")
topologies = Rows(TOPOLOGIES, key="project_id")
milestones = Rows(MILESTONES, key="name")
