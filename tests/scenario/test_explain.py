"""Why a server is where it is: decisions that explain themselves, dry runs that write nothing, and who may see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.clients.rest import FixedToken, RestClient
from kilonova.cmd import scheduler_api
from kilonova.cmd.main import main
from tests.databases import Places
from tests.http.compute.cloud import BASE, until
from tests.scenario.stage import NOTHING, Stage, becomes, boot, create, delete, flavor, stage

SERVICE = "/scheduler"
CONFIG = "[quota]\ninstances = -1\ncores = -1\nram = -1\n[simulated]\nmemory_mb = 4096\nvcpus = 4\n"
BEATING = {"agents", "services", "conductors", "compute_nodes"}
"""Tables that change by themselves."""

Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("explain") / "state", places, hosts=3, config=CONFIG) as made:
        yield made


@pytest.fixture
def command(here: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, as the administrator of the cloud: exit code, and what was printed."""

    def client(_arguments: object) -> RestClient:
        return RestClient("scheduler", BASE + SERVICE, here.transport, FixedToken(here.admin.token))

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(words)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    def compute(_arguments: object) -> RestClient:
        return RestClient("compute", f"{BASE}/compute/v2.1", here.transport, FixedToken(here.admin.token))

    monkeypatch.setattr(scheduler_api, "client", client)
    monkeypatch.setattr(scheduler_api, "compute", compute)
    return run


def decided(here: Stage, reference: str, query: str = "") -> dict[str, Any]:
    """The decision about something, once it is written."""
    path = f"/decisions/{reference}{query}"
    until(lambda: here.admin.status("GET", path, service=SERVICE) == 200)
    found: dict[str, Any] = here.admin.get(path, service=SERVICE)["decision"]
    return found


def stages(decision: dict[str, Any]) -> dict[str, Any]:
    return {row["name"]: row for row in decision["stages"]}


def host_of(here: Stage, server: str) -> str:
    return str(here.admin.get(f"/servers/{server}")["server"]["OS-EXT-SRV-ATTR:host"])


def test_the_story_of_a_server_is_told_stage_by_stage(here: Stage, command: Command) -> None:
    server = boot(here.demo.at("2.37"), networks="none")["id"]
    host = host_of(here, server)
    decision = decided(here, server, f"?host={host}")
    assert [row["number"] for row in decision["stages"]] == list(range(1, 9))
    told = stages(decision)
    assert told["candidates"]["candidates"] == told["host states"]["hosts"] == 3
    assert told["filters"]["rounds"][0]["filters"][0]["name"] == "ComputeFilter"
    assert told["claim"]["winners"] == {server: host}
    assert len(told["claim"]["alternates"]) == 2
    assert all(told[name]["milliseconds"] > 0 for name in ("request", "candidates", "filters", "weighers", "claim"))
    assert decision["fate"]["what"] == "winner"
    assert decided(here, decision["request_id"])["id"] == decided(here, str(decision["id"]))["id"] == decision["id"]
    code, text = command("explain", server, "--host", told["claim"]["alternates"][0])
    assert code == 0
    for words in ("placed", "ComputeFilter: 3 → 3", f"winner {host}", "Why: ", "is an alternate", "4  candidates"):
        assert words in text
    code, text = command("explain", decision["request_id"], "-f", "json")
    assert (code, json.loads(text)["id"]) == (0, decision["id"])
    delete(here.demo, server)


def test_a_server_may_be_told_by_its_name_if_it_is_the_only_one(here: Stage, command: Command) -> None:
    demo = here.demo.at("2.37")
    server = boot(demo, networks="none", name="one.and+only")["id"]
    decided(here, server)
    assert command("explain", "one.and+only", "-f", "json")[0] == 0
    twin = boot(demo, networks="none", name="one.and+only")["id"]
    code, text = command("explain", "one.and+only")
    assert code == 1
    assert "Several servers have the name one.and+only" in text
    assert server in text
    assert twin in text
    delete(here.demo, server, twin)


def test_no_valid_host_names_the_filter_to_those_who_may_know(here: Stage, command: Command) -> None:
    extra = {"extra_specs": {"capabilities:hypervisor_type": "zVM"}}
    admin = here.admin
    made = admin.ok("POST", "/flavors", {"flavor": {"name": "odd", "ram": 64, "vcpus": 1, "disk": 1}})["flavor"]["id"]
    admin.ok("POST", f"/flavors/{made}/os-extra_specs", extra)
    server = create(here.demo.at("2.37"), networks="none", flavorRef=made)
    becomes(here.demo, server, "ERROR")
    plain = here.demo.get(f"/servers/{server}")["server"]["fault"]
    assert plain["message"] == "No valid host was found. There are not enough hosts available."
    assert "details" not in plain
    details = admin.get(f"/servers/{server}")["server"]["fault"]["details"]
    assert details.startswith("Filters: ComputeCapabilitiesFilter left none of 3 hosts. 3 hosts: its hypervisor_type")
    assert "The nearest miss is sim-" in details
    decision = decided(here, server)
    assert (decision["outcome"], decision["explanation"]) == ("no_valid_host", details)
    code, text = command("explain", server)
    assert (code, "ComputeCapabilitiesFilter: 3 → 0, 3 fell" in text, "Why not: " in text) == (0, True, True)
    delete(here.demo, server)
    admin.ok("DELETE", f"/flavors/{made}")


def test_a_cloud_that_is_full_says_what_runs_out(here: Stage, command: Command) -> None:
    large = flavor(here.demo, "m1.large")
    server = create(here.demo.at("2.37"), networks="none", flavorRef=large)
    becomes(here.demo, server, "ERROR")
    shortage = stages(decided(here, server))["candidates"]["shortage"]
    assert shortage["reasons"] == [{"hosts": 3, "text": shortage["first"][0]["text"]}]
    assert "needs 8192 MB of memory, " in command("explain", server)[1]
    delete(here.demo, server)


def dump(here: Stage) -> dict[str, list[Any]]:
    """Every row of every database, except what changes by itself."""
    found = {}
    for database in here.cloud._databases:
        with database.read() as connection:
            inspector = sa.inspect(connection)
            for table in set(inspector.get_table_names()) - BEATING:
                rows = connection.execute(sa.text(f"SELECT * FROM {table}"))
                found[f"{database.url.database}.{table}"] = sorted(map(repr, rows))
    return found


def test_a_dry_run_and_a_count_of_what_fits_write_nothing(here: Stage, command: Command) -> None:
    group = here.admin.at("2.64").ok("POST", "/os-server-groups", {
        "server_group": {"name": "apart", "policy": "anti-affinity"}})["server_group"]["id"]  # fmt: skip
    before = dump(here)
    code, text = command("simulate", "--flavor", "m1.tiny", "--image", "cirros-0.6.3-x86_64-disk", "--count", "3",
                         "--hint", f"group={group}", "-f", "json")  # fmt: skip
    assert code == 0
    winners = stages(json.loads(text))["claim"]["winners"]
    assert len(set(winners.values())) == 3
    assert command("simulate", "--flavor", "m1.tiny", "--count", "4", "--hint", f"group={group}")[0] == 3
    assert command("capacity", "--flavor", "m1.tiny")[0] == 0
    assert dump(here) == before
    here.admin.ok("DELETE", f"/os-server-groups/{group}", status=204)


def test_the_capacity_is_what_then_really_fits(here: Stage, command: Command) -> None:
    fits = json.loads(command("capacity", "--flavor", "m1.small", "-f", "json")[1])
    assert 0 < fits["fits"] <= 6
    demo = here.demo.at("2.37")
    small = flavor(demo, "m1.small")
    servers = [boot(demo, networks="none", flavorRef=small)["id"] for _ in range(fits["fits"])]
    refused = create(demo, networks="none", flavorRef=small)
    becomes(demo, refused, "ERROR")
    code, text = command("capacity", "--flavor", "m1.small")
    assert (code, text.splitlines()[0]) == (3, "0 more fit on 0 hosts.")
    delete(demo, refused, *servers)
    assert here.left() == NOTHING


def test_a_request_as_it_was_can_be_thought_through_again(here: Stage, command: Command, tmp_path: Path) -> None:
    server = boot(here.demo.at("2.37"), networks="none")["id"]
    spec = stages(decided(here, server))["request"]["spec"]
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    for words in (("--server", server), ("--spec", str(tmp_path / "spec.json"))):
        code, text = command("simulate", *words, "-f", "json")
        assert (code, stages(json.loads(text))["request"]["spec"]["flavor"]) == (0, spec["flavor"])
    delete(here.demo, server)


def test_recorded_requests_are_replayed_under_other_settings(here: Stage, command: Command, tmp_path: Path) -> None:
    servers = [boot(here.demo.at("2.37"), networks="none")["id"] for _ in range(3)]
    for server in servers:
        decided(here, server)
    delete(here.demo, *servers)
    file = str(tmp_path / "recording.json")
    code, text = command("record", file, "--last", "3")
    assert (code, text) == (0, f"3 requests and 3 hosts are in {file}.\n")
    stacking = ("ram", "cpu", "disk")
    changes = [word for name in stacking for word in ("--set", f"{name}_weight_multiplier=-1")]
    changes += ["--set", "io_ops_weight_multiplier=0"]
    code, text = command("replay", file, "--empty", *changes, "-f", "json")
    found = json.loads(text)
    assert (code, found["before"]["hosts_used"], found["after"]["hosts_used"]) == (0, 3, 1)
    assert (found["after"]["placed"], found["moved"]) == (3, 2)
    assert command("replay", file, "--empty", *changes, "-f", "json")[1] == text


def test_lists_are_in_pages_and_only_for_administrators(here: Stage) -> None:
    server = boot(here.demo.at("2.37"), networks="none")["id"]
    decided(here, server)
    first = here.admin.get("/decisions?limit=2", service=SERVICE)
    assert len(first["decisions"]) == 2
    (link,) = first["decisions_links"]
    assert link["href"].startswith(f"{BASE}{SERVICE}/decisions?limit=2&marker=")
    second = here.admin.get(link["href"].removeprefix(BASE + SERVICE), service=SERVICE)["decisions"]
    assert second[0]["id"] < first["decisions"][-1]["id"]
    (own,) = here.admin.get(f"/decisions?server={server}&outcome=placed", service=SERVICE)["decisions"]
    assert (own["servers"], own["host"]) == (1, host_of(here, server))
    asked = {"simulate": {"flavor": "m1.tiny"}}, {"capacity": {"flavor": "m1.tiny"}}
    for method, path, body in (
        ("GET", "/decisions", None), ("GET", f"/decisions/{server}", None), ("GET", "/recording", None),
        ("POST", "/simulate", asked[0]), ("POST", "/capacity", asked[1]),
    ):  # fmt: skip
        assert here.demo.status(method, path, body, service=SERVICE) == 403
        nobody = here.demo.__class__(here.transport, "", "", "")
        assert nobody.status(method, path, body, service=SERVICE) == 401
    document = here.admin.get("/openapi.json", service=SERVICE)
    assert set(document["paths"]) == {"/decisions", "/decisions/{reference}", "/simulate", "/capacity", "/recording"}
    delete(here.demo, server)


def test_who_is_no_administrator_is_told_whose_credentials_to_take(
    here: Stage, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, token = here.transport, FixedToken(here.demo.token)
    monkeypatch.setattr(scheduler_api, "client", lambda _: RestClient("scheduler", BASE + SERVICE, way, token))
    monkeypatch.setattr(scheduler_api, "compute", lambda _: RestClient("compute", f"{BASE}/compute/v2.1", way, token))
    for words in (("explain", "name"), ("explain", "1"), ("capacity", "--flavor", "m1.tiny"), ("record", "/tmp/x")):
        code, text = command(*words)
        assert (code, "--os-cloud kilonova-admin" in text) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate",), "Say what is to be scheduled"),
        (("simulate", "--flavor", "nosuch"), "Flavor nosuch could not be found."),
        (("simulate", "--flavor", "m1.tiny", "--image", "nosuch"), "Image nosuch could not be found."),
        (("simulate", "--flavor", "m1.tiny", "--az", "a:b:c:d"), "Invalid availability_zone format"),
        (("simulate", "--flavor", "m1.tiny", "--az", "nosuch"), "The requested availability zone is not available"),
        (("simulate", "--flavor", "m1.tiny", "--hint", "nothing"), "The hint nothing is not KEY=VALUE."),
        (("simulate", "--flavor", "m1.tiny", "--hint", "group=no"), "group"),
        (("simulate", "--flavor", "m1.tiny", "--count", "0"), "count"),
        (("simulate", "--server", "00000000-0000-4000-8000-000000000000"), "is not kept"),
        (("simulate", "--spec", "/nosuch"), "/nosuch cannot be used: no such file or directory."),
        (("explain", "00000000-0000-4000-8000-000000000000"), "No scheduling decision about"),
        (("explain", "a/../b?c"), "No scheduling decision about"),
        (("explain", "9" * 40), "No scheduling decision about"),
        (("capacity",), "Say what is to be scheduled"),
        (("record", "/nosuch/file"), "cannot be used"),
        (("replay", "/nosuch"), "cannot be used"),
    ],
)
def test_bad_input_is_one_clear_sentence(command: Command, words: tuple[str, ...], said: str) -> None:
    code, text = command(*words)
    assert code == 1
    assert text.startswith("kilonova: ")
    assert said in text
    assert text.count("\n") == 1
