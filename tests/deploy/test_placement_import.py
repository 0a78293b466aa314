"""A real Placement is moved to ours: both answer the same, and again after more has happened at the source."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kilonova.clients.rest import Transport
from kilonova.cmd.main import main
from kilonova.core import ids, json
from kilonova.core.context import Context
from kilonova.http.transport import SocketTransport, WsgiTransport
from kilonova.placement.app import make_app
from kilonova.sql.engine import Database
from tests.databases import KINDS
from tests.deploy import peers
from tests.deploy.processes import end
from tests.deploy.servers import databases

AGGREGATE = "aaaaaaaa-0000-4000-8000-000000000000"
PARTS = ("inventories", "usages", "aggregates", "traits", "allocations")
TIMELESS = re.compile(r"/usages|/allocation_candidates|/aggregates|^/resource_providers/.*/(allocations|traits)")
"""Answers that say the time of the request, or of another thing than theirs."""


@dataclass(frozen=True)
class Api:
    """One of the two services."""

    transport: Transport
    url: str

    def ask(self, method: str, path: str, body: Any = None, version: str = "1.39") -> tuple[Any, str | None]:
        """The document of a success, and when it was changed last."""
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": f"placement {version}"}
        headers |= {"Accept": "application/json"} | ({} if body is None else {"Content-Type": "application/json"})
        data = None if body is None else json.dumps(body)
        status, answered, text = self.transport.send(method, self.url + path, headers, data)
        assert status < 300, (method, path, status, text)
        return (json.loads(text) if text else None), answered.get("last-modified")

    def provider(self, name: str, parent: str | None = None, **totals: int) -> str:
        """A provider with inventories."""
        body = {"name": name, "uuid": ids.new_uuid()} | ({"parent_provider_uuid": parent} if parent else {})
        uuid = str(self.ask("POST", "/resource_providers", body)[0]["uuid"])
        if totals:
            self.stock(uuid, **totals)
        return uuid

    def generation(self, uuid: str) -> int:
        return int(self.ask("GET", f"/resource_providers/{uuid}")[0]["generation"])

    def stock(self, uuid: str, **totals: int) -> None:
        """Inventories with a ratio that single precision cannot hold."""
        stock = {name: {"total": total, "allocation_ratio": 1.15, "reserved": 1} for name, total in totals.items()}
        body = {"inventories": stock, "resource_provider_generation": self.generation(uuid)}
        self.ask("PUT", f"/resource_providers/{uuid}/inventories", body)

    def claim(
        self, amounts: dict[str, dict[str, int]], kind: str = "INSTANCE", consumer: str = "", **more: Any
    ) -> str:
        """Allocations of a new consumer, or another set of one that is there."""
        consumer = consumer or ids.new_uuid()
        body = {
            "allocations": {uuid: {"resources": held} for uuid, held in amounts.items()}, "project_id": "p1",
            "user_id": "u1", "consumer_generation": None, "consumer_type": kind, **more,
        }  # fmt: skip
        self.ask("PUT", f"/allocations/{consumer}", body)
        return consumer

    def old_claim(self, provider: str, version: str, **more: str) -> str:
        """Allocations as old clients write them."""
        consumer = ids.new_uuid()
        rows = [{"resource_provider": {"uuid": provider}, "resources": {"VCPU": 1}}]
        self.ask("PUT", f"/allocations/{consumer}", {"allocations": rows, **more}, version)
        return consumer


@dataclass
class Move:
    """A real Placement, ours, and the configuration with which ours is filled."""

    theirs: Api
    ours: Api
    source: str
    config: Path

    def bring(self) -> None:
        """Run the command."""
        assert main(["placement", "import", "--config-file", str(self.config), "--from", self.source]) == 0

    def same(self, consumers: list[str]) -> int:
        """Ask both everything; how many questions."""
        rows = self.theirs.ask("GET", "/resource_providers")[0]["resource_providers"]
        paths = ["/resource_providers", "/traits?associated=true", "/resource_classes"]
        paths.append("/usages?project_id=p1&consumer_type=all")  # without a type theirs breaks on PostgreSQL
        paths += [f"/allocations/{consumer}" for consumer in consumers]
        for row in rows:
            own = f"/resource_providers/{row['uuid']}"
            paths += [own, *(f"{own}/{part}" for part in PARTS)]
        paths += ["/allocation_candidates?resources=VCPU:1,CUSTOM_SLOT:1", "/allocation_candidates?resources=VCPU:5"]
        for path in paths:
            (left, then), (right, now) = self.theirs.ask("GET", path), self.ours.ask("GET", path)
            assert _sorted(left) == _sorted(right), path
            if not TIMELESS.search(path) and not _bare(left):
                assert then == now, path
        return len(paths)


def _bare(document: dict[str, Any]) -> bool:
    """Whether it is an empty list, which was never changed: its time is that of the request."""
    (first, *_) = sorted(document.values(), key=lambda value: not isinstance(value, list | dict))
    return first in ([], {})


def _sorted(document: Any) -> Any:
    """Lists in an order of their own: neither service promises one."""
    if isinstance(document, dict):
        return {key: _sorted(value) for key, value in document.items()}
    if isinstance(document, list):
        return sorted((_sorted(one) for one in document), key=json.dumps)
    return document


@pytest.fixture(params=KINDS)
def move(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Move]:
    kind = str(request.param)
    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0)) as free:
        url = lambda name: f"sqlite:///{tmp_path}/{name}.db"  # noqa: E731
        if kind != "sqlite":
            peers.program("placement-manage")
            url = stack.enter_context(databases(kind, ("theirs", "ours")))
        port = free.getsockname()[1]
        free.close()
        process = peers.placement_alone(tmp_path / "theirs", url("theirs"), port)
        stack.callback(lambda: end([process]))
        config = tmp_path / "placement.conf"
        config.write_text(f"[placement_database]\nconnection = {url('ours')}\n")
        assert main(["placement", "db", "sync", "--config-file", str(config)]) == 0
        database = Database(url("ours"), pool_size=1)
        stack.callback(database.dispose)
        app = make_app(database)

        def as_admin(environ: dict[str, Any], start_response: Any) -> Any:
            who = Context(
                request_id=ids.new_request_id(), overwrite=False, roles=["admin"], project_id="a", user_id="a"
            )  # fmt: skip
            prefix = {"SCRIPT_NAME": "/placement", "PATH_INFO": environ["PATH_INFO"].removeprefix("/placement")}
            return app(environ | prefix | {"kilonova.context": who}, start_response)

        at = f"http://127.0.0.1:{port}/placement"
        theirs, ours = Api(SocketTransport(timeout=60.0), at), Api(WsgiTransport(as_admin), at)
        yield Move(theirs, ours, url("theirs"), config)


def test_ours_answers_as_the_real_one_did_and_follows_it(move: Move) -> None:
    there = move.theirs
    there.ask("PUT", "/resource_classes/CUSTOM_SLOT")
    there.ask("PUT", "/traits/CUSTOM_RED")
    host, other = there.provider("host", VCPU=101, MEMORY_MB=2048), there.provider("other", VCPU=20)
    numa = there.provider("numa", host, CUSTOM_SLOT=4)
    pool = there.provider("pool", DISK_GB=1000)
    for uuid, traits in ((host, ["CUSTOM_RED", "HW_CPU_X86_AVX2"]), (pool, ["MISC_SHARES_VIA_AGGREGATE"])):
        body: dict[str, Any] = {"traits": traits, "resource_provider_generation": there.generation(uuid)}
        there.ask("PUT", f"/resource_providers/{uuid}/traits", body)
        body = {"aggregates": [AGGREGATE], "resource_provider_generation": there.generation(uuid)}
        there.ask("PUT", f"/resource_providers/{uuid}/aggregates", body)
    consumers = [
        there.claim({host: {"VCPU": 4, "MEMORY_MB": 512}, numa: {"CUSTOM_SLOT": 1}, pool: {"DISK_GB": 10}}),
        there.claim({host: {"VCPU": 2}}, "MIGRATION"),
        there.claim({other: {"VCPU": 3}}, project_id="p2"),
        there.old_claim(other, "1.8", project_id="p1", user_id="u2"),
        there.old_claim(other, "1.7"),
    ]
    move.bring()
    assert move.same(consumers) > 20
    first, second, third, *_ = consumers
    there.claim({other: {"VCPU": 5}}, consumer=first, consumer_generation=1)
    there.ask("DELETE", f"/allocations/{second}")
    there.ask("PUT", f"/resource_providers/{numa}", {"name": "renamed", "parent_provider_uuid": other})
    there.ask("DELETE", f"/resource_providers/{pool}")
    there.stock(host, VCPU=50)
    consumers.append(there.claim({there.provider("new", host, VCPU=8): {"VCPU": 1}, host: {"VCPU": 1}}))
    move.bring()
    move.same(consumers)
    move.ours.claim({other: {"VCPU": 4}}, consumer=third, consumer_generation=1, project_id="p2")
    assert main(["placement", "audit", "--only-database", "--config-file", str(move.config)]) == 0
    assert main(["placement", "import", "--config-file", str(move.config), "--from", move.source]) == 2
