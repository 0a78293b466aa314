"""initial"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kilonova.sql import types

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "aggregates",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregates")),
        sa.UniqueConstraint("name", name=op.f("uq_aggregates_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_aggregates_uuid")),
    )
    op.create_table(
        "build_requests",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("instance", types.LongText, nullable=False),
        sa.Column("block_device_mappings", types.LongText, nullable=False),
        sa.Column("tags", types.LongText, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_build_requests")),
        sa.UniqueConstraint("instance_uuid", name=op.f("uq_build_requests_instance_uuid")),
    )
    with op.batch_alter_table("build_requests", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_build_requests_project_id"), ["project_id"], unique=False)

    op.create_table(
        "cell_mappings",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=True),
        sa.Column("transport_url", sa.Text(), nullable=False),
        sa.Column("database_connection", sa.Text(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cell_mappings")),
        sa.UniqueConstraint("uuid", name=op.f("uq_cell_mappings_uuid")),
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
        "flavors",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("flavorid", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("root_gb", sa.Integer(), nullable=False),
        sa.Column("ephemeral_gb", sa.Integer(), nullable=False),
        sa.Column("swap", sa.Integer(), nullable=False),
        sa.Column("vcpu_weight", sa.Integer(), nullable=True),
        sa.Column("rxtx_factor", sa.Double(), nullable=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flavors")),
        sa.UniqueConstraint("flavorid", name=op.f("uq_flavors_flavorid")),
        sa.UniqueConstraint("name", name=op.f("uq_flavors_name")),
    )
    op.create_table(
        "instance_groups",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_groups")),
        sa.UniqueConstraint("uuid", name=op.f("uq_instance_groups_uuid")),
    )
    with op.batch_alter_table("instance_groups", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_instance_groups_project_id"), ["project_id"], unique=False)

    op.create_table(
        "instance_mappings",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("cell_uuid", types.Uuid, nullable=True),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("queued_for_delete", sa.Boolean(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_mappings")),
        sa.UniqueConstraint("instance_uuid", name=op.f("uq_instance_mappings_instance_uuid")),
    )
    with op.batch_alter_table("instance_mappings", schema=None) as batch_op:
        batch_op.create_index("instance_mappings_project", ["project_id", "queued_for_delete"], unique=False)

    op.create_table(
        "key_pairs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=255), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("type", sa.String(length=8), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_pairs")),
        sa.UniqueConstraint("user_id", "name", name="key_pairs_name"),
    )
    op.create_table(
        "project_user_quotas",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("resource", sa.String(length=255), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_user_quotas")),
        sa.UniqueConstraint("project_id", "user_id", "resource", name="project_user_quotas_resource"),
    )
    op.create_table(
        "quota_classes",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("class_name", sa.String(length=255), nullable=False),
        sa.Column("resource", sa.String(length=255), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quota_classes")),
        sa.UniqueConstraint("class_name", "resource", name="quota_classes_resource"),
    )
    op.create_table(
        "quota_locks",
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_quota_locks")),
    )
    op.create_table(
        "quotas",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("resource", sa.String(length=255), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quotas")),
        sa.UniqueConstraint("project_id", "resource", name="quotas_resource"),
    )
    op.create_table(
        "request_specs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("spec", types.LongText, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request_specs")),
        sa.UniqueConstraint("instance_uuid", name=op.f("uq_request_specs_instance_uuid")),
    )
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
        "aggregate_hosts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("aggregate_id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(
            ["aggregate_id"], ["aggregates.id"], name=op.f("fk_aggregate_hosts_aggregate_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregate_hosts")),
        sa.UniqueConstraint("aggregate_id", "host", name="aggregate_hosts_host"),
    )
    with op.batch_alter_table("aggregate_hosts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_aggregate_hosts_host"), ["host"], unique=False)

    op.create_table(
        "aggregate_metadata",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("aggregate_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("value", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(
            ["aggregate_id"], ["aggregates.id"], name=op.f("fk_aggregate_metadata_aggregate_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregate_metadata")),
        sa.UniqueConstraint("aggregate_id", "key", name="aggregate_metadata_key"),
    )
    with op.batch_alter_table("aggregate_metadata", schema=None) as batch_op:
        batch_op.create_index("aggregate_metadata_value", ["key", "value"], unique=False)

    op.create_table(
        "flavor_extra_specs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("flavor_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("value", sa.String(length=255), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(
            ["flavor_id"], ["flavors.id"], name=op.f("fk_flavor_extra_specs_flavor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flavor_extra_specs")),
        sa.UniqueConstraint("flavor_id", "key", name="flavor_extra_specs_key"),
    )
    op.create_table(
        "flavor_projects",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("flavor_id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(
            ["flavor_id"], ["flavors.id"], name=op.f("fk_flavor_projects_flavor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flavor_projects")),
        sa.UniqueConstraint("flavor_id", "project_id", name="flavor_projects_project"),
    )
    op.create_table(
        "host_mappings",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("cell_uuid", types.Uuid, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(["cell_uuid"], ["cell_mappings.uuid"], name=op.f("fk_host_mappings_cell_uuid")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host_mappings")),
        sa.UniqueConstraint("host", name=op.f("uq_host_mappings_host")),
    )
    with op.batch_alter_table("host_mappings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_host_mappings_cell_uuid"), ["cell_uuid"], unique=False)

    op.create_table(
        "instance_group_member",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("instance_uuid", types.Uuid, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.ForeignKeyConstraint(
            ["group_id"], ["instance_groups.id"], name=op.f("fk_instance_group_member_group_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_group_member")),
        sa.UniqueConstraint("group_id", "instance_uuid", name="instance_group_member_instance"),
    )
    with op.batch_alter_table("instance_group_member", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_instance_group_member_instance_uuid"), ["instance_uuid"], unique=False)

    op.create_table(
        "instance_group_policy",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("policy", sa.String(length=255), nullable=False),
        sa.Column("rules", types.LongText, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["instance_groups.id"], name=op.f("fk_instance_group_policy_group_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_group_policy")),
        sa.UniqueConstraint("group_id", name=op.f("uq_instance_group_policy_group_id")),
    )
