"""Two processes of Placement on one database: what is written through one is read through the other at once, nothing is
taken twice, and a request made to be slow keeps nobody waiting."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kilonova.core import ids, json
from tests.databases import KINDS
from tests.deploy.processes import Process, end
from tests.deploy.servers import databases

WRITERS, TURNS, HOT = 8, 10, 40
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39", "Accept": "application/json"}


@dataclass(frozen=True)
class Side:
    """One of the processes."""

    port: int

    def connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = self.connected()
        data = None if body is None else json.dumps(body)
        headers = HEADERS | ({} if data is None else {"Content-Type": "application/json"})
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text else None

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        status, document = self.ask(method, path, body)
        assert status < 300, (method, path, status, document)
        return document

    def provider(self, name: str, parent: str | None = None, **totals: int) -> str:
        uuid = ids.new_uuid()
        body = {"name": name, "uuid": uuid} | ({"parent_provider_uuid": parent} if parent else {})
        self.ok("POST", "/resource_providers", body)
        if totals:
            stock = {name: {"total": total} for name, total in totals.items()}
            path = f"/resource_providers/{uuid}/inventories"
            self.ok("PUT", path, {"inventories": stock, "resource_provider_generation": 0})
        return uuid

    def claim(self, consumer: str, amounts: dict[str, int], generation: int | None = None) -> tuple[int, Any]:
        return self.ask("PUT", f"/allocations/{consumer}", {
            "allocations": {uuid: {"resources": {"VCPU": amount}} for uuid, amount in amounts.items()},
            "project_id": "p", "user_id": "u", "consumer_generation": generation, "consumer_type": "INSTANCE",
        })  # fmt: skip

    def used(self, uuid: str) -> int:
        return int(self.ok("GET", f"/resource_providers/{uuid}/usages")["usages"]["VCPU"])


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        return int(one.getsockname()[1]), int(two.getsockname()[1])


@pytest.fixture(scope="module", params=KINDS)
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Two processes that believe whoever asks them, on an empty database of each kind."""
    folder: Path = tmp_path_factory.mktemp("placement")
    with ExitStack() as stack:
        url = f"sqlite:///{folder}/placement.db"
        if request.param != "sqlite":
            url = stack.enter_context(databases(request.param, ("placement",)))("placement")
        file = folder / "placement.conf"
        file.write_text(f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n")
        ports = _free_ports()
        processes = [
            Process(f"placement{n}", ["placement", "--config-file", str(file), "--port", str(port)], folder)
            for n, port in enumerate(ports)
        ]
        for process in processes:
            process.start()
        stack.callback(end, processes)
        for process in processes:
            process.says("ready: ")
        yield Side(ports[0]), Side(ports[1])


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    broken: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert broken == []


def test_eight_writers_through_two_processes_each_read_what_they_wrote_through_the_other(
    sides: tuple[Side, Side]
) -> None:
    hot = sides[0].provider("hot", VCPU=HOT)
    own = [sides[n % 2].provider(f"own{n}", VCPU=100) for n in range(WRITERS)]
    taken = [0] * WRITERS

    def work(n: int) -> None:
        for turn in range(TURNS):
            there, here = sides[(n + turn) % 2], sides[(n + turn + 1) % 2]
            consumer = ids.new_uuid()
            status, document = here.claim(consumer, {own[n]: 1, hot: 1})
            if status == 204:
                taken[n] += 1
            else:
                assert (status, document["errors"][0]["code"]) == (409, "placement.undefined_code"), document
                assert "exceed the capacity" in document["errors"][0]["detail"]
                assert here.claim(consumer, {own[n]: 1})[0] == 204
            assert own[n] in there.ok("GET", f"/allocations/{consumer}")["allocations"]
            summary = there.ok("GET", f"/allocation_candidates?resources=VCPU:1&in_tree={own[n]}")["provider_summaries"]
            assert summary[own[n]]["resources"]["VCPU"]["used"] == turn + 1

    _in_threads(WRITERS, work)
    assert sum(taken) == HOT
    for side in sides:
        assert side.used(hot) == HOT
        assert [side.used(uuid) for uuid in own] == [TURNS] * WRITERS
        usages = side.ok("GET", "/usages?project_id=p")["usages"]["INSTANCE"]
        assert usages == {"consumer_count": WRITERS * TURNS, "VCPU": HOT + WRITERS * TURNS}


def test_every_kind_of_write_through_one_process_is_seen_through_the_other_at_once(sides: tuple[Side, Side]) -> None:
    one, two = sides
    for turn in range(6):
        here, there = (one, two) if turn % 2 else (two, one)
        root, trait, aggregate = here.provider(f"root{turn}", DISK_GB=9), f"CUSTOM_T{turn}", ids.new_uuid()
        child = there.provider(f"child{turn}", root, VCPU=4)

        def found(side: Side, condition: str) -> int:
            return len(side.ok("GET", f"/allocation_candidates?resources=DISK_GB:1,VCPU:1&{condition}")
                       ["allocation_requests"])  # fmt: skip

        assert found(here, f"in_tree={child}") == 1
        here.ok("PUT", f"/traits/{trait}")
        there.ok("PUT", f"/resource_providers/{child}/traits", {"traits": [trait], "resource_provider_generation": 1})
        assert found(here, f"required={trait}") == 1
        here.ok("PUT", f"/resource_providers/{root}/aggregates",
                {"aggregates": [aggregate], "resource_provider_generation": 1})  # fmt: skip
        assert found(there, f"member_of={aggregate}") == 1
        here.ok("PUT", f"/resource_providers/{child}", {"name": f"child{turn}", "parent_provider_uuid": None})
        assert found(there, f"in_tree={child}") == 0
        there.ok("DELETE", f"/resource_providers/{child}")
        here.ok("DELETE", f"/traits/{trait}")
        assert there.ask("GET", f"/allocation_candidates?resources=VCPU:1&required={trait}")[0] == 400


def test_a_request_made_to_be_slow_keeps_nobody_waiting(sides: tuple[Side, Side]) -> None:
    side = sides[0]
    root = side.provider("wide")
    for n in range(8):
        side.provider(f"wide{n}", root, VCPU=64)
    groups = "&".join(f"resources_{n}=VCPU:1" for n in range(8))
    begun, ended = threading.Event(), threading.Event()
    found: list[int] = []
    quick: list[bool] = []

    def slow() -> None:
        connection = side.connected()
        begun.set()
        connection.request("GET", f"/allocation_candidates?{groups}&group_policy=none&in_tree_0={root}", None, HEADERS)
        answer = connection.getresponse()  # its head: the rest is only the way here
        ended.set()
        found.append(len(json.loads(answer.read())["allocation_requests"]))
        connection.close()

    asking = threading.Thread(target=slow)
    asking.start()
    assert begun.wait(10)
    while not ended.is_set():
        side.ok("GET", f"/allocation_candidates?resources=VCPU:1&in_tree={root}&limit=1")
        side.ok("GET", f"/resource_providers/{root}")
        quick.append(not ended.is_set())
    asking.join()
    assert found[0] > 10_000, "the request was not slow at all"
    assert any(quick), "nobody else was answered while the slow request ran"
