"""Services, agents and compute nodes.

An agent process beats with one statement however many hosts it serves: the hosts' service rows name their agent,
and liveness is read through it. A service without an agent (conductor, scheduler) beats on its own row.
"""

import sqlalchemy as sa

from kilonova.db.cell_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import LongText, Timestamp, Uuid

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("report_count", sa.Integer, nullable=False, default=0),
    sa.Column("last_seen_up", Timestamp, nullable=False),
)

services = sa.Table(
    "services",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("binary", sa.String(255), nullable=False),
    sa.Column("topic", sa.String(255), nullable=False),
    sa.Column("agent", sa.String(255), index=True),
    sa.Column("report_count", sa.Integer, nullable=False, default=0),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("disabled_reason", sa.String(255)),
    sa.Column("forced_down", sa.Boolean, nullable=False, default=False),
    sa.Column("last_seen_up", Timestamp),
    sa.Column("version", sa.Integer, nullable=False, default=0),
    sa.Column("deleted", sa.Boolean, nullable=False, default=False),
    *stamps(),
    sa.UniqueConstraint("host", "binary", "deleted", name="services_host_binary"),
)

compute_nodes = sa.Table(
    "compute_nodes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("host", sa.String(255), nullable=False, unique=True),
    sa.Column("hypervisor_hostname", sa.String(255), nullable=False),
    sa.Column("hypervisor_type", sa.String(255), nullable=False),
    sa.Column("hypervisor_version", sa.Integer, nullable=False),
    sa.Column("host_ip", sa.String(39)),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("local_gb", sa.Integer, nullable=False),
    sa.Column("vcpus_used", sa.Integer, nullable=False, default=0),
    sa.Column("memory_mb_used", sa.Integer, nullable=False, default=0),
    sa.Column("local_gb_used", sa.Integer, nullable=False, default=0),
    sa.Column("free_ram_mb", sa.Integer, nullable=False, default=0),
    sa.Column("free_disk_gb", sa.Integer, nullable=False, default=0),
    sa.Column("disk_available_least", sa.Integer),
    sa.Column("current_workload", sa.Integer, nullable=False, default=0),
    sa.Column("running_vms", sa.Integer, nullable=False, default=0),
    sa.Column("failed_builds", sa.Integer, nullable=False, default=0),
    sa.Column("cpu_info", LongText, nullable=False),
    sa.Column("supported_instances", LongText, nullable=False),
    sa.Column("stats", LongText, nullable=False),
    sa.Column("metrics", LongText, nullable=False),
    sa.Column("numa_topology", LongText),
    sa.Column("pci_stats", LongText),
    sa.Column("cpu_allocation_ratio", sa.Double, nullable=False),
    sa.Column("ram_allocation_ratio", sa.Double, nullable=False),
    sa.Column("disk_allocation_ratio", sa.Double, nullable=False),
    *stamps(),
)
