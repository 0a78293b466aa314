"""How text compares: character by character, on every database.

MariaDB's and MySQL's own ways take `a` for `A` and `á`, one emoji for any other, and `a` for `a` with a space behind.
"""

from __future__ import annotations

from sqlalchemy.engine import Connection


def exactly(connection: Connection) -> None:
    """Have the tables that are made in this database from now on compare text exactly; SQLite and PostgreSQL do."""
    if connection.dialect.name in ("mysql", "mariadb"):
        of_mariadb = getattr(connection.dialect, "is_mariadb", False)
        collation = "utf8mb4_nopad_bin" if of_mariadb else "utf8mb4_0900_bin"
        connection.exec_driver_sql(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {collation}")
