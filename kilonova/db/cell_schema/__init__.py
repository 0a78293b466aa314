"""Tables of a cell database, one module per noun; `metadata` holds them all."""

from __future__ import annotations

from kilonova.db.cell_schema.actions import instance_actions, instance_actions_events, instance_faults
from kilonova.db.cell_schema.devices import block_device_mapping, console_auth_tokens
from kilonova.db.cell_schema.hosts import agents, compute_nodes, services
from kilonova.db.cell_schema.metadata import metadata
from kilonova.db.cell_schema.migrations import migrations
from kilonova.db.cell_schema.servers import instance_extra, instances, tags
from kilonova.db.journal_schema import journal_tables

workflows, workflow_events, conductors = journal_tables(metadata)

__all__ = [
    "agents",
    "block_device_mapping",
    "compute_nodes",
    "conductors",
    "console_auth_tokens",
    "instance_actions",
    "instance_actions_events",
    "instance_extra",
    "instance_faults",
    "instances",
    "metadata",
    "migrations",
    "services",
    "tags",
    "workflow_events",
    "workflows",
]
