"""Who meets a database that is away or has no connection left is told to come again, and not that we are broken."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.core import ids
from kilonova.http.app import App
from kilonova.http.middleware import Settings, pipeline
from kilonova.http.op import Op, Request
from kilonova.http.transport import WsgiTransport
from kilonova.sql.engine import Database
from tests.deploy.servers import SERVERS, databases
from tests.unit.http.ask import Answer, app, ask


def over(database: Database) -> App:
    def read(req: Request) -> dict[str, Any]:
        with database.read() as connection:
            return {"one": connection.execute(sa.text("SELECT 1")).scalar_one()}

    return app(Op("GET", "/things", read))


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Database]:
    """A database with one connection for reading, for which nobody waits."""
    database = Database(f"sqlite:///{tmp_path}/x.db", pool_size=1, max_overflow=0, pool_timeout=0)
    yield database
    database.dispose()


def is_told_to_come_again(answer: Answer) -> bool:
    return answer.status == 503 and answer.header("Retry-After") == ["3"]


def test_no_connection_of_the_pool_is_503_until_there_is_one(narrow: Database, caplog: Any) -> None:
    to = over(narrow)
    with narrow.read():
        refused = ask(to, "GET", "/things")
    assert is_told_to_come_again(refused)
    assert refused.body["serviceUnavailable"]["message"].endswith("try again in a moment.")
    assert "QueuePool limit" in caplog.text
    assert "Traceback" not in caplog.text
    assert ask(to, "GET", "/things").body == {"one": 1}


def test_a_statement_that_is_wrong_is_still_our_fault(narrow: Database) -> None:
    def read(req: Request) -> None:
        with narrow.read() as connection:
            connection.execute(sa.text("SELECT nothing FROM nowhere"))

    assert ask(app(Op("GET", "/things", read)), "GET", "/things").status == 500


def test_what_comes_before_the_application_answers_the_same(narrow: Database, caplog: Any) -> None:
    def before(environ: dict[str, Any], start_response: Any) -> Any:
        with narrow.read():
            start_response("200 OK", [("Content-Length", "0")])
            return []

    to = WsgiTransport(pipeline(before, service="identity", settings=Settings()))
    with narrow.read(), caplog.at_level(logging.INFO, logger="kilonova.access"):
        status, headers, body = to.send("GET", "http://h/x", {}, None)
    assert (status, headers["retry-after"], headers["content-length"]) == (503, "3", str(len(body)))
    assert '"GET /x" status: 503' in caplog.records[-1].getMessage()
    assert to.send("GET", "http://h/x", {}, None)[0] == 200


LIMITED = {
    "postgresql": (
        "CREATE ROLE {name} LOGIN PASSWORD 'x' CONNECTION LIMIT 1",
        "DROP ROLE {name}",
    ),
    "mariadb": (
        "CREATE USER '{name}'@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1",
        "DROP USER '{name}'@'%'",
    ),
}


@pytest.fixture
def limited(kind: str) -> Iterator[sa.URL]:
    """A database of a user whom its server lets in once at a time."""
    with databases(kind, ("busy",)) as url:
        there = sa.make_url(url("busy"))
        name = f"kilonova_{ids.new_hex()[:8]}"
        server = sa.create_engine(there, isolation_level="AUTOCOMMIT")
        make, remove = (statement.format(name=name) for statement in LIMITED[kind])
        with server.connect() as connection:
            connection.execute(sa.text(make))
            if kind == "mariadb":
                escaped = str(there.database).replace("_", r"\_")
                connection.exec_driver_sql(f"GRANT ALL ON `{escaped}`.* TO '{name}'@'%%'")
        yield there.set(username=name, password="x")
        with server.connect() as connection:
            connection.execute(sa.text(remove))
        server.dispose()


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_with_too_many_connections_is_503(limited: sa.URL) -> None:
    address = limited.render_as_string(hide_password=False)
    holder, other = Database(address, pool_size=1), Database(address)
    to = over(other)
    with holder.read():
        assert is_told_to_come_again(ask(to, "GET", "/things"))
    holder.dispose()
    assert ask(to, "GET", "/things").status == 200
    other.dispose()
