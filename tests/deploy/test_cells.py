"""Two cells, each with a database, a virtual host, a conductor and an agent of its own, below one API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from kilonova.sql.engine import Database
from tests.deploy.deployment import HOSTS, deployment
from tests.deploy.people import People, amiss, clear
from tests.scenario.stage import becomes, create

CELLS = ("cell1", "cell2")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with deployment("mariadb", tmp_path_factory.mktemp("cells"), cells=CELLS) as made:
        found = People(made)
        found.settle_in(len(CELLS) * HOSTS)
        yield found


def rows(people: People, cell: str) -> dict[str, str]:
    """Host of each server in a cell's database."""
    database = Database(people.made.url(cell))
    with database.read() as connection:
        found = connection.execute(sa.text("SELECT uuid, host FROM instances WHERE NOT deleted")).all()
    database.dispose()
    return dict(found)  # type: ignore[arg-type]


def test_servers_go_to_both_cells_and_each_is_in_the_database_of_its_own(people: People) -> None:
    servers = set()
    for number in range(2 * len(CELLS) * HOSTS):  # one after the other: those chosen for at once may all go to one host
        server = create(people.demo, name=f"s{number}")
        becomes(people.demo, server, "ACTIVE", 30)
        servers.add(server)
    for number, cell in enumerate(CELLS, 1):
        found = rows(people, cell)
        assert {host.split("-")[0] for host in found.values()} == {f"node{number}"}
        servers -= found.keys()
    assert servers == set()
    assert amiss(people) == {}
    console = {"os-getConsoleOutput": {"length": 5}}
    for row in people.servers():
        assert people.demo.ok("POST", f"/servers/{row['id']}/action", console)["output"]
    clear(people)
