"""where the broker of the region is"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kilonova.sql import types

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "region",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("transport_url", sa.Text(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_region")),
    )
