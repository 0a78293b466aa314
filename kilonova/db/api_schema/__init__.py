"""Tables of the API database, one module per noun; `metadata` holds them all."""

from __future__ import annotations

from kilonova.db.api_schema.aggregates import aggregate_hosts, aggregate_metadata, aggregates
from kilonova.db.api_schema.decisions import scheduler_decision_servers, scheduler_decisions
from kilonova.db.api_schema.flavors import flavor_extra_specs, flavor_projects, flavors
from kilonova.db.api_schema.groups import instance_group_member, instance_group_policy, instance_groups
from kilonova.db.api_schema.keypairs import key_pairs
from kilonova.db.api_schema.mappings import cell_mappings, host_mappings, instance_mappings
from kilonova.db.api_schema.metadata import metadata
from kilonova.db.api_schema.quotas import project_user_quotas, quota_classes, quota_locks, quotas
from kilonova.db.api_schema.region import region
from kilonova.db.api_schema.requests import build_requests, request_specs
from kilonova.db.journal_schema import journal_tables

workflows, workflow_events, conductors = journal_tables(metadata)

__all__ = [
    "aggregate_hosts",
    "aggregate_metadata",
    "aggregates",
    "build_requests",
    "cell_mappings",
    "conductors",
    "flavor_extra_specs",
    "flavor_projects",
    "flavors",
    "host_mappings",
    "instance_group_member",
    "instance_group_policy",
    "instance_groups",
    "instance_mappings",
    "key_pairs",
    "metadata",
    "project_user_quotas",
    "quota_classes",
    "quota_locks",
    "quotas",
    "region",
    "request_specs",
    "scheduler_decision_servers",
    "scheduler_decisions",
    "workflow_events",
    "workflows",
]
