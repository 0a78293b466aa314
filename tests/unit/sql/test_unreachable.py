"""What of a database's errors means that it is not there, and what that it is and refuses."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from kilonova.core import clock
from kilonova.db import api_schema
from kilonova.db.api_schema import quota_locks
from kilonova.sql.engine import Database, unreachable
from tests.databases import Shared
from tests.deploy.servers import SERVERS

_HOLD = sa.update(quota_locks).where(quota_locks.c.project_id == sa.bindparam("b")).values(taken=1)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_deadlock_says_nothing_of_the_database(shared: Shared, kind: str) -> None:
    database = shared.empty(kind, "api", api_schema.metadata)
    with database.write() as connection:
        connection.execute(quota_locks.insert(), [{"project_id": name, "taken": 0} for name in ("a", "b")])
    both, wrong = threading.Barrier(2), []

    def lock(*names: str) -> None:
        try:
            with database.write() as connection:
                connection.execute(_HOLD, {"b": names[0]})
                both.wait(10)
                connection.execute(_HOLD, {"b": names[1]})
        except sa.exc.SQLAlchemyError as error:
            wrong.append(error)

    threads = [threading.Thread(target=lock, args=names) for names in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [unreachable(error) for error in wrong] == [False]


@pytest.mark.parametrize(("kind", "database"), [("postgresql", "kilonova_none"), ("mariadb", "kilonova_none")])
def test_a_database_that_nobody_made_is_not_there(shared: Shared, kind: str, database: str) -> None:
    server = shared.empty(kind, "api", api_schema.metadata).url
    other = Database(server.set(database=database).render_as_string(hide_password=False))
    with pytest.raises(sa.exc.SQLAlchemyError) as refused, other.read():
        pass
    assert unreachable(refused.value)


def test_a_connection_that_is_cut_is_a_database_that_is_not_there(shared: Shared) -> None:
    database = shared.empty("postgresql", "api", api_schema.metadata)
    with pytest.raises(sa.exc.SQLAlchemyError) as cut, database.read() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert unreachable(cut.value)
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1


@pytest.mark.parametrize(("number", "away"), [(2003, True), (2013, True), (1040, True), (3024, False), (4025, False)])
def test_what_mariadb_refuses_says_nothing_of_the_database(number: int, away: bool) -> None:
    cause = Exception(number, "words")
    assert unreachable(sa.exc.OperationalError("UPDATE", {}, cause)) is away


@pytest.mark.parametrize(("kind", "own"), [("postgresql", "pg_backend_pid()"), ("mariadb", "connection_id()")])
def test_a_connection_that_broke_while_it_rested_is_not_lent(shared: Shared, kind: str, own: str) -> None:
    database = shared.empty(kind, "api", api_schema.metadata)
    killer = Database(database.url.render_as_string(hide_password=False), pool_size=1)
    for lend in (database.read, database.write):
        with lend() as connection:
            number = connection.execute(sa.text(f"SELECT {own}")).scalar()
        with killer.read() as connection:
            kill = f"SELECT pg_terminate_backend({number})" if kind == "postgresql" else f"KILL {number}"
            connection.execute(sa.text(kill))
        before = clock.install(_Later(clock.monotonic() + 60))
        try:
            with lend() as connection:
                assert connection.execute(sa.text(f"SELECT {own}")).scalar() != number
        finally:
            clock.install(before)
    killer.dispose()


class _Later(clock.SystemClock):
    def __init__(self, now: float) -> None:
        self._now = now

    def monotonic(self) -> float:
        return self._now
