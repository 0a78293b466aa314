"""initial"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kilonova.sql import types

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("report_count", sa.Integer(), nullable=False),
        sa.Column("last_seen_up", types.Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_table(
        "block_device_mapping",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("source_type", sa.String(length=16), nullable=False),
        sa.Column("destination_type", sa.String(length=16), nullable=False),
        sa.Column("device_name", sa.String(length=255), nullable=True),
        sa.Column("boot_index", sa.Integer(), nullable=True),
        sa.Column("volume_id", types.Uuid, nullable=True),
        sa.Column("snapshot_id", types.Uuid, nullable=True),
        sa.Column("image_id", types.Uuid, nullable=True),
        sa.Column("volume_size", sa.Integer(), nullable=True),
        sa.Column("volume_type", sa.String(length=255), nullable=True),
        sa.Column("guest_format", sa.String(length=255), nullable=True),
        sa.Column("device_type", sa.String(length=255), nullable=True),
        sa.Column("disk_bus", sa.String(length=255), nullable=True),
        sa.Column("delete_on_termination", sa.Boolean(), nullable=False),
        sa.Column("no_device", sa.Boolean(), nullable=False),
        sa.Column("tag", sa.String(length=60), nullable=True),
        sa.Column("attachment_id", types.Uuid, nullable=True),
        sa.Column("connection_info", types.LongText, nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_block_device_mapping")),
        sa.UniqueConstraint("uuid", name=op.f("uq_block_device_mapping_uuid")),
    )
    with op.batch_alter_table("block_device_mapping", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_block_device_mapping_instance_uuid"), ["instance_uuid"], unique=False)
        batch_op.create_index(batch_op.f("ix_block_device_mapping_volume_id"), ["volume_id"], unique=False)

    op.create_table(
        "compute_nodes",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("hypervisor_hostname", sa.String(length=255), nullable=False),
        sa.Column("hypervisor_type", sa.String(length=255), nullable=False),
        sa.Column("hypervisor_version", sa.Integer(), nullable=False),
        sa.Column("host_ip", sa.String(length=39), nullable=True),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("local_gb", sa.Integer(), nullable=False),
        sa.Column("vcpus_used", sa.Integer(), nullable=False),
        sa.Column("memory_mb_used", sa.Integer(), nullable=False),
        sa.Column("local_gb_used", sa.Integer(), nullable=False),
        sa.Column("free_ram_mb", sa.Integer(), nullable=False),
        sa.Column("free_disk_gb", sa.Integer(), nullable=False),
        sa.Column("disk_available_least", sa.Integer(), nullable=True),
        sa.Column("current_workload", sa.Integer(), nullable=False),
        sa.Column("running_vms", sa.Integer(), nullable=False),
        sa.Column("failed_builds", sa.Integer(), nullable=False),
        sa.Column("cpu_info", types.LongText, nullable=False),
        sa.Column("supported_instances", types.LongText, nullable=False),
        sa.Column("stats", types.LongText, nullable=False),
        sa.Column("metrics", types.LongText, nullable=False),
        sa.Column("numa_topology", types.LongText, nullable=True),
        sa.Column("pci_stats", types.LongText, nullable=True),
        sa.Column("cpu_allocation_ratio", sa.Double(), nullable=False),
        sa.Column("ram_allocation_ratio", sa.Double(), nullable=False),
        sa.Column("disk_allocation_ratio", sa.Double(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compute_nodes")),
        sa.UniqueConstraint("host", name=op.f("uq_compute_nodes_host")),
        sa.UniqueConstraint("uuid", name=op.f("uq_compute_nodes_uuid")),
    )
    op.create_table(
        "conductors",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conductors")),
    )
    op.create_table(
        "console_auth_tokens",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("console_type", sa.String(length=255), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("internal_access_path", sa.String(length=255), nullable=True),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("access_url_base", sa.String(length=255), nullable=True),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_console_auth_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_console_auth_tokens_token_hash")),
    )
    with op.batch_alter_table("console_auth_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_console_auth_tokens_instance_uuid"), ["instance_uuid"], unique=False)

    op.create_table(
        "instance_actions",
        sa.Column("id", types.BigId, autoincrement=True, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("project_id", sa.String(length=255), nullable=True),
        sa.Column("start_time", types.Timestamp, nullable=False),
        sa.Column("finish_time", types.Timestamp, nullable=True),
        sa.Column("message", sa.String(length=255), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_actions")),
    )
    with op.batch_alter_table("instance_actions", schema=None) as batch_op:
        batch_op.create_index("instance_actions_instance", ["instance_uuid", "created_at"], unique=False)
        batch_op.create_index("instance_actions_request", ["instance_uuid", "request_id"], unique=False)

    op.create_table(
        "instance_extra",
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("keypairs", types.LongText, nullable=True),
        sa.Column("user_data", types.LongText, nullable=True),
        sa.Column("personality", types.LongText, nullable=True),
        sa.Column("trusted_certs", types.LongText, nullable=True),
        sa.Column("numa_topology", types.LongText, nullable=True),
        sa.Column("pci_requests", types.LongText, nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("instance_uuid", name=op.f("pk_instance_extra")),
    )
    op.create_table(
        "instance_faults",
        sa.Column("id", types.BigId, autoincrement=True, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("message", sa.String(length=255), nullable=False),
        sa.Column("details", types.LongText, nullable=True),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_faults")),
    )
    with op.batch_alter_table("instance_faults", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_instance_faults_instance_uuid"), ["instance_uuid"], unique=False)

    op.create_table(
        "instances",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=255), nullable=False),
        sa.Column("display_description", sa.String(length=255), nullable=True),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("vm_state", sa.String(length=32), nullable=False),
        sa.Column("task_state", sa.String(length=64), nullable=True),
        sa.Column("power_state", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("node", sa.String(length=255), nullable=True),
        sa.Column("launched_on", sa.String(length=255), nullable=True),
        sa.Column("compute_id", types.Uuid, nullable=True),
        sa.Column("availability_zone", sa.String(length=255), nullable=True),
        sa.Column("image_ref", sa.String(length=255), nullable=False),
        sa.Column("kernel_id", sa.String(length=255), nullable=False),
        sa.Column("ramdisk_id", sa.String(length=255), nullable=False),
        sa.Column("instance_type_id", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("root_gb", sa.Integer(), nullable=False),
        sa.Column("ephemeral_gb", sa.Integer(), nullable=False),
        sa.Column("reservation_id", sa.String(length=255), nullable=False),
        sa.Column("launch_index", sa.Integer(), nullable=False),
        sa.Column("key_name", sa.String(length=255), nullable=True),
        sa.Column("key_data", sa.Text(), nullable=True),
        sa.Column("locked_by", sa.String(length=16), nullable=True),
        sa.Column("locked_reason", sa.String(length=255), nullable=True),
        sa.Column("os_type", sa.String(length=255), nullable=True),
        sa.Column("architecture", sa.String(length=255), nullable=True),
        sa.Column("root_device_name", sa.String(length=255), nullable=True),
        sa.Column("access_ip_v4", sa.String(length=39), nullable=True),
        sa.Column("access_ip_v6", sa.String(length=39), nullable=True),
        sa.Column("config_drive", sa.Boolean(), nullable=False),
        sa.Column("auto_disk_config", sa.Boolean(), nullable=False),
        sa.Column("disable_terminate", sa.Boolean(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("launched_at", types.Timestamp, nullable=True),
        sa.Column("terminated_at", types.Timestamp, nullable=True),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("deleted_at", types.Timestamp, nullable=True),
        sa.Column("metadata", types.Json, nullable=False),
        sa.Column("system_metadata", types.Json, nullable=False),
        sa.Column("flavor", types.Json, nullable=False),
        sa.Column("network_info", types.Json, nullable=False),
        sa.Column("security_groups", types.Json, nullable=False),
        sa.Column("attachments", types.Json, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instances")),
        sa.UniqueConstraint("uuid", name=op.f("uq_instances_uuid")),
    )
    with op.batch_alter_table("instances", schema=None) as batch_op:
        batch_op.create_index("instances_host", ["host", "deleted"], unique=False)
        batch_op.create_index("instances_project", ["project_id", "deleted", "created_at", "id"], unique=False)
        batch_op.create_index("instances_updated", ["updated_at"], unique=False)

    op.create_table(
        "migrations",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("migration_type", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("source_compute", sa.String(length=255), nullable=True),
        sa.Column("source_node", sa.String(length=255), nullable=True),
        sa.Column("dest_compute", sa.String(length=255), nullable=True),
        sa.Column("dest_node", sa.String(length=255), nullable=True),
        sa.Column("dest_host", sa.String(length=255), nullable=True),
        sa.Column("old_instance_type_id", sa.Integer(), nullable=True),
        sa.Column("new_instance_type_id", sa.Integer(), nullable=True),
        sa.Column("memory_total", sa.BigInteger(), nullable=True),
        sa.Column("memory_processed", sa.BigInteger(), nullable=True),
        sa.Column("memory_remaining", sa.BigInteger(), nullable=True),
        sa.Column("disk_total", sa.BigInteger(), nullable=True),
        sa.Column("disk_processed", sa.BigInteger(), nullable=True),
        sa.Column("disk_remaining", sa.BigInteger(), nullable=True),
        sa.Column("cross_cell_move", sa.Boolean(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("project_id", sa.String(length=255), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_migrations")),
        sa.UniqueConstraint("uuid", name=op.f("uq_migrations_uuid")),
    )
    with op.batch_alter_table("migrations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_migrations_instance_uuid"), ["instance_uuid"], unique=False)

    op.create_table(
        "services",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("binary", sa.String(length=255), nullable=False),
        sa.Column("topic", sa.String(length=255), nullable=False),
        sa.Column("agent", sa.String(length=255), nullable=True),
        sa.Column("report_count", sa.Integer(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String(length=255), nullable=True),
        sa.Column("forced_down", sa.Boolean(), nullable=False),
        sa.Column("last_seen_up", types.Timestamp, nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_services")),
        sa.UniqueConstraint("host", "binary", "deleted", name="services_host_binary"),
        sa.UniqueConstraint("uuid", name=op.f("uq_services_uuid")),
    )
    with op.batch_alter_table("services", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_services_agent"), ["agent"], unique=False)

    op.create_table(
        "tags",
        sa.Column("resource_id", types.Uuid, nullable=False),
        sa.Column("tag", sa.String(length=60), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", "tag", name=op.f("pk_tags")),
    )
    with op.batch_alter_table("tags", schema=None) as batch_op:
        batch_op.create_index("tags_tag", ["tag"], unique=False)

    op.create_table(
        "workflow_events",
        sa.Column("id", types.BigId, autoincrement=True, nullable=False),
        sa.Column("subject", types.Uuid, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("payload", types.LongText, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflow_events")),
    )
    with op.batch_alter_table("workflow_events", schema=None) as batch_op:
        batch_op.create_index("workflow_events_subject", ["subject", "name", "key"], unique=False)

    op.create_table(
        "workflows",
        sa.Column("id", types.Uuid, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("subject", types.Uuid, nullable=False),
        sa.Column("params", types.LongText, nullable=False),
        sa.Column("context", types.LongText, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("log", types.LongText, nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("wake_at", sa.BigInteger(), nullable=True),
        sa.Column("error", types.LongText, nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflows")),
    )
    with op.batch_alter_table("workflows", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_workflows_subject"), ["subject"], unique=False)
        batch_op.create_index("workflows_state_owner", ["state", "owner"], unique=False)

    op.create_table(
        "instance_actions_events",
        sa.Column("id", types.BigId, autoincrement=True, nullable=False),
        sa.Column("action_id", types.BigId, nullable=False),
        sa.Column("event", sa.String(length=255), nullable=False),
        sa.Column("start_time", types.Timestamp, nullable=False),
        sa.Column("finish_time", types.Timestamp, nullable=True),
        sa.Column("result", sa.String(length=16), nullable=True),
        sa.Column("traceback", types.LongText, nullable=True),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("details", sa.String(length=255), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(
            ["action_id"],
            ["instance_actions.id"],
            name=op.f("fk_instance_actions_events_action_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_actions_events")),
    )
    with op.batch_alter_table("instance_actions_events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_instance_actions_events_action_id"), ["action_id"], unique=False)
