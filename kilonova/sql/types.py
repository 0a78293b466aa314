"""Column types that mean the same on every database."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
"""Naive UTC with microseconds."""

LongText = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
"""Text up to 16 MiB: user data, request specs, journals."""

Json = sa.JSON()
"""A JSON document."""

Uuid = sa.String(36)
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""An auto-increment key (SQLite increments only INTEGER)."""
