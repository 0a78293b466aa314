"""What identity keeps: accounts, grants, catalogue, tokens and limits. Secrets are kept as hashes only."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.embedded.store import Rows
from kilonova.sql.types import Json, Timestamp

metadata = sa.MetaData()


def _id() -> sa.Column[Any]:
    return sa.Column("id", sa.String(64), primary_key=True)


def _noun(name: str, *columns: Any) -> Rows:
    """A table whose API object is its columns and whatever else the client sent (`extra`)."""
    return Rows(sa.Table(
        name, metadata, _id(),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text, nullable=False, default=""),
        sa.Column("extra", Json, nullable=False, default=dict),
        *columns,
    ))  # fmt: skip


def _enabled() -> sa.Column[Any]:
    return sa.Column("enabled", sa.Boolean, nullable=False, default=True)


DOMAINS = _noun("identity_domains", _enabled(), sa.UniqueConstraint("name", name="identity_domain_name"))

PROJECTS = _noun(
    "identity_projects",
    sa.Column("domain_id", sa.String(64), nullable=False),
    sa.Column("parent_id", sa.String(64)),
    sa.Column("tags", Json, nullable=False, default=list),
    _enabled(),
    sa.UniqueConstraint("domain_id", "name", name="identity_project_name"),
)

USERS = _noun(
    "identity_users",
    sa.Column("domain_id", sa.String(64), nullable=False),
    sa.Column("default_project_id", sa.String(64)),
    sa.Column("password_hash", sa.String(255)),
    _enabled(),
    sa.UniqueConstraint("domain_id", "name", name="identity_user_name"),
)

ROLES = _noun("identity_roles", sa.UniqueConstraint("name", name="identity_role_name"))

# target_kind is one of grants.KINDS; target_id is "all" where the kind is "system".
GRANTS = Rows(
    sa.Table(
        "identity_grants",
        metadata,
        sa.Column("user_id", sa.String(64), primary_key=True),
        sa.Column("target_kind", sa.String(16), primary_key=True),
        sa.Column("target_id", sa.String(64), primary_key=True, index=True),
        sa.Column("role_id", sa.String(64), primary_key=True),
    ),
    key="user_id",
)

REGIONS = Rows(
    sa.Table(
        "identity_regions",
        metadata,
        sa.Column("id", sa.String(255), primary_key=True),
        sa.Column("description", sa.Text, nullable=False, default=""),
        sa.Column("parent_region_id", sa.String(255)),
    )
)

SERVICES = _noun("identity_services", sa.Column("type", sa.String(255), nullable=False), _enabled())

ENDPOINTS = Rows(
    sa.Table(
        "identity_endpoints",
        metadata,
        _id(),
        sa.Column("service_id", sa.String(64), nullable=False),
        sa.Column("interface", sa.String(8), nullable=False),
        sa.Column("region_id", sa.String(255), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        _enabled(),
        sa.UniqueConstraint("service_id", "interface", "region_id", name="identity_endpoint_place"),
    )
)

CREDENTIALS = Rows(
    sa.Table(
        "identity_application_credentials",
        metadata,
        _id(),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("project_id", sa.String(64), nullable=False),
        sa.Column("secret_hash", sa.String(255), nullable=False),
        sa.Column("role_ids", Json, nullable=False),
        sa.Column("unrestricted", sa.Boolean, nullable=False, default=False),
        sa.Column("expires_at", Timestamp),
        sa.UniqueConstraint("user_id", "name", name="identity_application_credential_name"),
    )
)

# The id is the token's SHA-256; exactly one of project, domain, is_system is set, or none (unscoped).
TOKENS = Rows(
    sa.Table(
        "identity_tokens",
        metadata,
        _id(),
        sa.Column("user_id", sa.String(64), nullable=False, index=True),
        sa.Column("project_id", sa.String(64), index=True),
        sa.Column("domain_id", sa.String(64)),
        sa.Column("is_system", sa.Boolean, nullable=False, default=False),
        sa.Column("credential_id", sa.String(64)),
        sa.Column("methods", Json, nullable=False),
        sa.Column("audit_id", sa.String(64), nullable=False),
        sa.Column("issued_at", Timestamp, nullable=False),
        sa.Column("expires_at", Timestamp, nullable=False, index=True),
    )
)

REGISTERED_LIMITS = Rows(
    sa.Table(
        "identity_registered_limits",
        metadata,
        _id(),
        sa.Column("service_id", sa.String(64), nullable=False),
        sa.Column("region_id", sa.String(255)),
        sa.Column("resource_name", sa.String(255), nullable=False),
        sa.Column("default_limit", sa.Integer, nullable=False),
        sa.Column("description", sa.Text),
    )
)

LIMITS = Rows(
    sa.Table(
        "identity_limits",
        metadata,
        _id(),
        sa.Column("project_id", sa.String(64)),
        sa.Column("domain_id", sa.String(64)),
        sa.Column("service_id", sa.String(64), nullable=False),
        sa.Column("region_id", sa.String(255)),
        sa.Column("resource_name", sa.String(255), nullable=False),
        sa.Column("resource_limit", sa.Integer, nullable=False),
        sa.Column("description", sa.Text),
    )
)
