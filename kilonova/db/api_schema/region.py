"""What the processes of the region tell those of its cells."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps

region = sa.Table(
    "region",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),  # there is one row: 1
    sa.Column("transport_url", sa.Text, nullable=False),
    *stamps(),
)
