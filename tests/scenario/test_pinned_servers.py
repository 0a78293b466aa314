"""Servers with host CPUs, huge pages and devices for themselves: until hosts are full, and gone without a trace."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kilonova.core.numa.topology import HostTopology
from kilonova.core.numa.wire import read_host
from kilonova.core.pci.pools import from_text
from tests.http.compute.cloud import Client, until
from tests.scenario.stage import NOTHING, Stage, becomes, boot, create, delete, image, stage

DEVICES = '{"vendor_id": "10de", "product_id": "20b5"}', '{"vendor_id": "8086"}'
CONFIG = f"""
[simulated]
vcpus = 16
memory_mb = 16384
numa_cells = 2
cpu_threads = 2
hugepages = 2048:1536
pci_devices = gpu:2, nic:1

[compute]
cpu_shared_set = 0,4,8,12
cpu_dedicated_set = 0-15,^0,^4,^8,^12

[pci]
device_spec = {DEVICES[0]}
device_spec = {DEVICES[1]}
alias = {{"name": "gpu", "vendor_id": "10de", "product_id": "20b5", "device_type": "type-PCI"}}
alias = {{"name": "vf", "vendor_id": "8086", "product_id": "154c", "device_type": "type-VF"}}
alias = {{"name": "pf", "vendor_id": "8086", "product_id": "1572", "device_type": "type-PF"}}

[filter_scheduler]
enabled_filters = ComputeFilter, NUMATopologyFilter, PciPassthroughFilter
"""
VERSION = "2.96"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("pinned") / "state", hosts=2, config=CONFIG) as made:
        sets = {"instances": -1, "cores": -1, "ram": -1}
        made.admin.ok("PUT", f"/os-quota-sets/{made.demo.project}", {"quota_set": sets})
        yield made


def flavor(here: Stage, name: str, cpus: int, memory_mb: int = 512, **specs: str) -> str:
    """A flavor with extra specs: `hw_cpu_policy` stands for hw:cpu_policy."""
    body = {"name": name, "vcpus": cpus, "ram": memory_mb, "disk": 1}
    made = str(here.admin.ok("POST", "/flavors", {"flavor": body})["flavor"]["id"])
    wanted = {key.replace("_", ":", 1): value for key, value in specs.items()}
    if alias := wanted.pop("pci:alias", None):
        wanted["pci_passthrough:alias"] = alias
    if wanted:
        here.admin.ok("POST", f"/flavors/{made}/os-extra_specs", {"extra_specs": wanted})
    return made


def left(here: Stage, host: str) -> tuple[HostTopology, dict[str, int]]:
    """What a host says that it has left: cells, and free devices by product."""
    with closing(sqlite3.connect(here.directory / "databases/cell1.db")) as connection:
        statement = "SELECT numa_topology, pci_stats FROM compute_nodes WHERE host = ?"
        topology, stats = connection.execute(statement, (host,)).fetchone()
    pools: dict[str, int] = {}
    for pool in from_text(stats):
        pools[pool.product_id] = pools.get(pool.product_id, 0) + pool.count
    return read_host(topology), pools


def pinned(here: Stage) -> int:
    """Host CPUs that guests have for themselves, over both hosts."""
    return sum(cell.pinned.bit_count() for host in HOSTS for cell in left(here, host)[0].cells)


HOSTS = ("sim-0001", "sim-0002")


def fill(client: Client, flavor_id: str) -> list[str]:
    """Servers of a flavor until one finds no host."""
    made = []
    while True:
        server = create(client, flavorRef=flavor_id, networks="none")
        shown = ended(client, server)
        if shown["status"] == "ERROR":
            assert "No valid host" in shown["fault"]["message"], shown["fault"]
            delete(client, server)
            return made
        made.append(server)


def ended(client: Client, server: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        shown: dict[str, Any] = client.get(f"/servers/{server}")["server"]
        return shown if shown["status"] in ("ACTIVE", "ERROR") and shown["OS-EXT-STS:task_state"] is None else None

    shown: dict[str, Any] = until(found)
    return shown


def test_pinned_servers_fill_the_dedicated_cpus_and_no_cpu_is_given_twice(here: Stage) -> None:
    demo, admin = here.demo.at(VERSION), here.admin.at(VERSION)
    made = fill(demo, flavor(here, "pinned", 4, hw_cpu_policy="dedicated"))
    assert len(made) == 4, "each of the four cells has 6 dedicated CPUs, and the 4 of a server are of one cell"
    made += fill(demo, flavor(here, "pinned-small", 2, hw_cpu_policy="dedicated"))
    assert len(made) == 8
    taken = set()
    for server in made:
        (node,) = admin.get(f"/servers/{server}/topology")["nodes"]
        host = admin.get(f"/servers/{server}")["server"]["OS-EXT-SRV-ATTR:host"]
        taken |= {(host, cpu) for cpu in node["cpu_pinning"].values()}
        assert len(node["cpu_pinning"]) in (2, 4)
        assert node["siblings"], "threads of one core go together"
    assert len(taken) == 24
    assert pinned(here) == 24
    assert here.used()["PCPU"] == 24
    delete(demo, *made)
    assert pinned(here) == 0
    assert here.left() == NOTHING


def test_huge_pages_are_given_once_and_come_back(here: Stage) -> None:
    demo = here.demo.at(VERSION)
    made = fill(demo, flavor(here, "huge", 1, 1024, hw_mem_page_size="2MB"))
    assert len(made) == 12, "each of the four cells has 3 GiB of huge pages"
    cells = [cell for host in HOSTS for cell in left(here, host)[0].cells]
    assert [pages.free for cell in cells for pages in cell.pages if pages.size_kb == 2048] == [0, 0, 0, 0]
    delete(demo, *made)
    cells = [cell for host in HOSTS for cell in left(here, host)[0].cells]
    assert [pages.used for cell in cells for pages in cell.pages if pages.size_kb == 2048] == [0, 0, 0, 0]


def test_devices_are_given_once_and_virtual_functions_bar_the_physical_one(here: Stage) -> None:
    demo = here.demo.at(VERSION)
    wanted = flavor(here, "gpu", 1, pci_alias="gpu:1")
    asked = {"capacity": {"flavor": wanted}}
    foreseen = here.admin.ok("POST", "/capacity", asked, service="/scheduler")["capacity"]["fits"]
    gpus = fill(demo, wanted)
    assert len(gpus) == foreseen == 4
    physical = flavor(here, "pf", 1, pci_alias="pf:1")
    functions = [boot(demo, flavorRef=flavor(here, "vf", 1, pci_alias="vf:3"), networks="none")["id"]]
    whole = fill(demo, physical)
    assert len(whole) == 1, "one card is whole, of the other three functions are in use"
    counts = [left(here, host)[1] for host in HOSTS]
    assert sorted(count.get("154c", 0) for count in counts) == [0, 1]
    assert all("1572" not in count and "20b5" not in count for count in counts)
    delete(demo, *gpus, *functions, *whole)
    for host in HOSTS:
        assert left(here, host)[1] == {"20b5": 2, "1572": 1, "154c": 4}


def test_several_servers_of_one_request_get_cpus_of_their_own(here: Stage) -> None:
    demo = here.demo.at(VERSION)
    wanted = flavor(here, "pinned-pair", 2, hw_cpu_policy="dedicated", hw_cpu_thread_policy="require")
    create(demo, name="pair", flavorRef=wanted, networks="none", min_count=12)
    servers = [row["id"] for row in demo.get("/servers?name=pair")["servers"]]
    assert len(servers) == 12
    for server in servers:
        becomes(demo, server, "ACTIVE")
    assert pinned(here) == 24
    delete(demo, *servers)
    assert pinned(here) == 0


def test_what_guests_hold_survives_a_restart_of_everything(tmp_path: Path) -> None:
    with stage(tmp_path / "state", hosts=2, config=CONFIG) as before:
        wanted = flavor(before, "kept", 2, hw_cpu_policy="dedicated", pci_alias="gpu:1")
        server = boot(before.demo.at(VERSION), flavorRef=wanted, networks="none")["id"]
        topology = before.admin.at(VERSION).get(f"/servers/{server}/topology")
    with stage(tmp_path / "state", hosts=2, config=CONFIG) as after:
        demo = after.demo.at(VERSION)
        assert after.admin.at(VERSION).get(f"/servers/{server}/topology") == topology
        many = fill(demo, wanted)
        assert len(many) == 3, "of four GPUs one is in use"
        assert pinned(after) == 8
        delete(demo, server, *many)
        assert pinned(after) == 0
        assert after.left() == NOTHING


def test_a_server_that_does_not_care_has_no_topology(here: Stage) -> None:
    demo = here.demo.at(VERSION)
    server = boot(demo, networks="none")["id"]
    assert demo.get(f"/servers/{server}/topology") == {"nodes": [], "pagesize_kb": None}
    delete(demo, server)


def test_users_see_the_cells_and_not_where_they_are(here: Stage) -> None:
    demo = here.demo.at(VERSION)
    wanted = flavor(here, "two-cells", 4, 1024, hw_numa_nodes="2")
    server = boot(demo, flavorRef=wanted, networks="none")["id"]
    assert demo.get(f"/servers/{server}/topology") == {
        "nodes": [
            {"vcpu_set": [0, 1], "siblings": [], "memory_mb": 512},
            {"vcpu_set": [2, 3], "siblings": [], "memory_mb": 512},
        ],
        "pagesize_kb": None,
    }
    delete(demo, server)


@pytest.mark.parametrize(("specs", "message"), [
    ({"hw_cpu_policy": "mixed"}, "hw:cpu_dedicated_mask"),
    ({"hw_numa_nodes": "3"}, "cannot be dealt evenly"),
    ({"pci_alias": "unknown:1"}, "PCI alias unknown is not defined"),
    ({"hw_locked_memory": "true"}, "needs a page size"),
])  # fmt: skip
def test_a_flavor_that_contradicts_itself_is_refused(here: Stage, specs: dict[str, str], message: str) -> None:
    demo = here.demo.at(VERSION)
    bad = flavor(here, f"bad-{'-'.join(specs)}", 2, **specs)
    server = {"name": "bad", "flavorRef": bad, "imageRef": image(demo), "networks": "none"}
    assert message in demo.refused(400, "POST", "/servers", {"server": server})


IN_PLACEMENT = """
[simulated]
vcpus = 16
memory_mb = 16384
numa_cells = 2
pci_devices = gpu:2, nic:1

[compute]
cpu_dedicated_set = 4-7,12-15
cpu_shared_set = 0-3,8-11

[pci]
report_in_placement = true
device_spec = {"vendor_id": "10de", "resource_class": "gpu", "traits": "big"}
device_spec = {"product_id": "154c"}
alias = {"name": "gpu", "resource_class": "CUSTOM_GPU", "traits": "CUSTOM_BIG", "numa_policy": "required"}
alias = {"name": "vf", "vendor_id": "8086", "product_id": "154c", "device_type": "type-VF"}

[filter_scheduler]
pci_in_placement = true
enabled_filters = ComputeFilter, NUMATopologyFilter, PciPassthroughFilter
"""


def test_devices_are_claimed_in_placement_card_by_card(tmp_path: Path) -> None:
    with stage(tmp_path / "state", hosts=1, config=IN_PLACEMENT) as here:
        demo = here.demo.at(VERSION)
        names = {row["name"]: row["uuid"] for row in here.placement("/resource_providers")["resource_providers"]}
        assert names.keys() == {"sim-0001", *(f"sim-0001_0000:8{number}:00.0" for number in range(3))}
        card = here.placement(f"/resource_providers/{names['sim-0001_0000:82:00.0']}/inventories")["inventories"]
        assert {name: row["total"] for name, row in card.items()} == {"CUSTOM_PCI_8086_154C": 4}

        pinned_gpu = flavor(here, "gpu", 1, hw_cpu_policy="dedicated", pci_alias="gpu:1")
        made = [boot(demo, flavorRef=pinned_gpu, networks="none")["id"] for _ in range(2)]
        for server in made:
            (node,) = here.admin.at(VERSION).get(f"/servers/{server}/topology")["nodes"]
            held = here.allocations(server)
            card_of = f"sim-0001_0000:8{node['host_node']}:00.0"
            assert held[names[card_of]]["resources"] == {"CUSTOM_GPU": 1}, "the card claimed is the one at the cell"
        made += [boot(demo, flavorRef=flavor(here, "vfs", 1, pci_alias="vf:3"), networks="none")["id"]]
        assert left(here, "sim-0001")[1] == {"154c": 1}
        assert fill(demo, pinned_gpu) == []
        assert here.used()["CUSTOM_PCI_8086_154C"] == 3
        delete(demo, *made)
        assert left(here, "sim-0001")[1] == {"20b5": 2, "154c": 4}
        assert here.left() == NOTHING
