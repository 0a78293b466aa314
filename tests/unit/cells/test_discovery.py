"""New hosts from time to time: who looks, what is said, and what a cell that is away does to the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kilonova.cells import registry
from kilonova.cells.cells import Cells
from kilonova.cells.discovery import Discovery
from kilonova.core import clock, ids
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import hosts, services
from kilonova.sql.engine import Database


class Site:
    """An API database and two cells, in files."""

    def __init__(self, directory: Path) -> None:
        self.api = Database(f"sqlite:///{directory}/api.db")
        api_schema.metadata.create_all(self.api._writer)
        self.uuids: list[str] = []
        for name in ("one", "two"):
            url = f"sqlite:///{directory}/{name}.db"
            cell = Database(url)
            cell_schema.metadata.create_all(cell._writer)
            cell.dispose()
            made = registry.create(
                self.api, name=name, transport_url=f"rabbit://{name}", database_connection=url, disabled=False
            )
            self.uuids.append(made)
        self.cells = Cells(self.api)

    def cell(self, number: int) -> Database:
        return self.cells.database(self.uuids[number])

    def add_host(self, number: int, host: str) -> None:
        """One that has reported."""
        values = {
            "uuid": ids.new_uuid(), "host": host, "hypervisor_hostname": host, "hypervisor_type": "QEMU",
            "hypervisor_version": 1, "vcpus": 1, "memory_mb": 1, "local_gb": 1, "cpu_info": "{}", "stats": "{}",
            "supported_instances": "[]", "metrics": "[]", "cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0,
            "disk_allocation_ratio": 1.0,
        }  # fmt: skip
        with self.cell(number).write() as connection:
            connection.execute(cell_schema.compute_nodes.insert().values(**values))

    def add_scheduler(self, name: str, silent_for: float = 0.0) -> None:
        """In the first cell, as schedulers are."""
        services.register_own(self.cell(0), name, {"nova-scheduler": "scheduler"}, 74)
        table = cell_schema.services
        seen = clock.utcnow() - timedelta(seconds=silent_for)
        with self.cell(0).write() as connection:
            connection.execute(table.update().where(table.c.host == name).values(last_seen_up=seen))

    def mapped(self) -> dict[str, str]:
        """Hosts with the cell they are in."""
        with self.api.read() as connection:
            return hosts.cells_of(connection, ["h1", "h2", "h3"])

    def discovery(self, me: str = "s1") -> Discovery:
        return Discovery(self.cells, Database, me, interval=3600, down_time=60)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.cells.close()


def test_new_hosts_of_every_cell_are_taken_in_and_named(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add_host(0, "h1")
    site.add_host(1, "h2")
    with caplog.at_level(logging.INFO):
        site.discovery().look()
    assert site.mapped() == {"h1": site.uuids[0], "h2": site.uuids[1]}
    assert [record.getMessage() for record in caplog.records] == ["Discovered 2 new hosts: one:h1, two:h2"]


def test_only_the_first_by_name_of_the_schedulers_that_are_up_looks(site: Site) -> None:
    site.add_host(0, "h1")
    site.add_scheduler("s1")
    site.add_scheduler("s0", silent_for=3600)
    site.discovery("s2").look()
    assert site.mapped() == {}
    site.discovery("s1").look()
    assert site.mapped() == {"h1": site.uuids[0]}


def test_a_host_that_another_cell_has_is_warned_of_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add_host(0, "h1")
    made = site.discovery()
    made.look()
    site.add_host(1, "h1")
    with caplog.at_level(logging.DEBUG, logger="kilonova.cells.discovery"):
        caplog.clear()
        made.look()
        made.look()
    levels = [record.levelname for record in caplog.records if "h1" in record.getMessage()]
    assert levels == ["WARNING", "DEBUG"]
    assert site.mapped() == {"h1": site.uuids[0]}


def test_a_cell_that_is_away_keeps_no_other_from_its_hosts(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add_host(1, "h2")

    def opened(url: str) -> Database:
        if url.endswith("one.db"):
            raise OSError("away")
        return Database(url)

    Discovery(site.cells, opened, "s1", interval=3600, down_time=60).look()
    assert site.mapped() == {"h2": site.uuids[1]}
    assert any("cell one could not be looked for" in record.getMessage() for record in caplog.records)


def test_a_cell_with_a_new_address_is_read_there_after_a_refresh(site: Site, tmp_path: Path) -> None:
    moved = tmp_path / "moved.db"
    before = site.cell(1)
    with site.api.write() as connection:
        table = api_schema.cell_mappings
        connection.execute(
            table.update().where(table.c.uuid == site.uuids[1]).values(database_connection=f"sqlite:///{moved}")
        )
    one = site.cell(0)
    site.cells.refresh()
    assert str(moved) in str(site.cell(1).url)
    assert site.cell(0) is one, "what did not move stays open"
    before.dispose()
