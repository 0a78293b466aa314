"""Servers. The row is what a list needs, read in one query; `instance_extra` is what only a few operations need."""

import sqlalchemy as sa

from kilonova.db.cell_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import Json, LongText, Timestamp, Uuid

instances = sa.Table(
    "instances",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("version", sa.Integer, nullable=False, default=1),  # rises with every change: compare-and-swap
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("display_name", sa.String(255), nullable=False),
    sa.Column("display_description", sa.String(255)),
    sa.Column("hostname", sa.String(255), nullable=False),
    sa.Column("vm_state", sa.String(32), nullable=False),
    sa.Column("task_state", sa.String(64)),
    sa.Column("power_state", sa.Integer, nullable=False, default=0),
    sa.Column("progress", sa.Integer, nullable=False, default=0),
    sa.Column("host", sa.String(255)),
    sa.Column("node", sa.String(255)),
    sa.Column("launched_on", sa.String(255)),
    sa.Column("compute_id", Uuid),  # the compute node's uuid, which is its resource provider's
    sa.Column("availability_zone", sa.String(255)),
    sa.Column("image_ref", sa.String(255), nullable=False, default=""),
    sa.Column("kernel_id", sa.String(255), nullable=False, default=""),
    sa.Column("ramdisk_id", sa.String(255), nullable=False, default=""),
    sa.Column("instance_type_id", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("root_gb", sa.Integer, nullable=False),
    sa.Column("ephemeral_gb", sa.Integer, nullable=False, default=0),
    sa.Column("reservation_id", sa.String(255), nullable=False),
    sa.Column("launch_index", sa.Integer, nullable=False, default=0),
    sa.Column("key_name", sa.String(255)),
    sa.Column("key_data", sa.Text),
    sa.Column("locked_by", sa.String(16)),  # owner, admin
    sa.Column("locked_reason", sa.String(255)),
    sa.Column("os_type", sa.String(255)),
    sa.Column("architecture", sa.String(255)),
    sa.Column("root_device_name", sa.String(255)),
    sa.Column("access_ip_v4", sa.String(39)),
    sa.Column("access_ip_v6", sa.String(39)),
    sa.Column("config_drive", sa.Boolean, nullable=False, default=False),
    sa.Column("auto_disk_config", sa.Boolean, nullable=False, default=False),
    sa.Column("disable_terminate", sa.Boolean, nullable=False, default=False),
    sa.Column("hidden", sa.Boolean, nullable=False, default=False),
    sa.Column("launched_at", Timestamp),
    sa.Column("terminated_at", Timestamp),
    sa.Column("deleted", sa.Boolean, nullable=False, default=False),
    sa.Column("deleted_at", Timestamp),
    sa.Column("metadata", Json, nullable=False),
    sa.Column("system_metadata", Json, nullable=False),  # image properties under image_*, and our own notes
    sa.Column("flavor", Json, nullable=False),  # core.request_spec.FlavorSpec
    sa.Column("network_info", Json, nullable=False),  # list of vifs, see workflows.build
    sa.Column("security_groups", Json, nullable=False),  # names or ids asked for until ports carry them
    sa.Column("attachments", Json, nullable=False),  # [{id, delete_on_termination}] mirrored from block devices
    *stamps(),
    sa.Index("instances_project", "project_id", "deleted", "created_at", "id"),
    sa.Index("instances_host", "host", "deleted"),
    sa.Index("instances_updated", "updated_at"),
)

instance_extra = sa.Table(
    "instance_extra",
    metadata,
    sa.Column("instance_uuid", Uuid, primary_key=True),
    sa.Column("keypairs", LongText),
    sa.Column("user_data", LongText),
    sa.Column("personality", LongText),
    sa.Column("trusted_certs", LongText),
    sa.Column("numa_topology", LongText),
    sa.Column("pci_requests", LongText),
    *stamps(),
)

tags = sa.Table(
    "tags",
    metadata,
    sa.Column("resource_id", Uuid, primary_key=True),
    sa.Column("tag", sa.String(60), primary_key=True),
    sa.Index("tags_tag", "tag"),
)
