"""How a database is opened: the one room that knows what SQLite, PostgreSQL and MariaDB each want."""
