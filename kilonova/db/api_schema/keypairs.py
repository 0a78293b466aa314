"""Key pairs belong to users, not to projects."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps

key_pairs = sa.Table(
    "key_pairs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("fingerprint", sa.String(255), nullable=False),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("type", sa.String(8), nullable=False, default="ssh"),
    *stamps(),
    sa.UniqueConstraint("user_id", "name", name="key_pairs_name"),
)
