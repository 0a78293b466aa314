"""The keys of a server, per shape and version, against the table of the contract (server-view.md 1.3) key by key."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.api.compute.server_view import SERVER
from kilonova.api.compute.versions import LINES
from kilonova.http.versions import parse, span

SHAPES = ("show", "detail", "update", "rebuild")
ATTRIBUTES = "os_compute_api:os-extended-server-attributes"

# key | GET one | GET detail | PUT | rebuild | * = only with the rule for extended attributes
TABLE = """
id|2.1|2.1|2.1|2.1
name|2.1|2.1|2.1|2.1
status|2.1|2.1|2.1|2.1
tenant_id|2.1|2.1|2.1|2.1
user_id|2.1|2.1|2.1|2.1
hostId|2.1|2.1|2.1|2.1
created|2.1|2.1|2.1|2.1
updated|2.1|2.1|2.1|2.1
image|2.1|2.1|2.1|2.1
flavor|2.1|2.1|2.1|2.1
addresses|2.1|2.1|2.1|2.1
accessIPv4|2.1|2.1|2.1|2.1
accessIPv6|2.1|2.1|2.1|2.1
metadata|2.1|2.1|2.1|2.1
links|2.1|2.1|2.1|2.1
OS-DCF:diskConfig|2.1|2.1|2.1|2.1
progress|2.1|2.1|2.1|2.1
fault|2.1|2.1|2.1|2.1
OS-EXT-AZ:availability_zone|2.1|2.1|2.75|2.75
config_drive|2.1|2.1|2.75|2.75
key_name|2.1|2.1|2.75|2.54
OS-SRV-USG:launched_at|2.1|2.1|2.75|2.75
OS-SRV-USG:terminated_at|2.1|2.1|2.75|2.75
security_groups|2.1|2.1|2.75|2.75
OS-EXT-STS:task_state|2.1|2.1|2.75|2.75
OS-EXT-STS:vm_state|2.1|2.1|2.75|2.75
OS-EXT-STS:power_state|2.1|2.1|2.75|2.75
os-extended-volumes:volumes_attached|2.1|2.1|2.75|2.75
OS-EXT-SRV-ATTR:host|2.1|2.1|2.75|2.75|*
OS-EXT-SRV-ATTR:hypervisor_hostname|2.1|2.1|2.75|2.75|*
OS-EXT-SRV-ATTR:instance_name|2.1|2.1|2.75|2.75|*
OS-EXT-SRV-ATTR:hostname|2.3-2.89|2.3-2.89|2.75-2.89|2.75-2.89|*
OS-EXT-SRV-ATTR:hostname|2.90|2.90|2.90|2.90
OS-EXT-SRV-ATTR:kernel_id|2.3|2.3|2.75|2.75|*
OS-EXT-SRV-ATTR:ramdisk_id|2.3|2.3|2.75|2.75|*
OS-EXT-SRV-ATTR:launch_index|2.3|2.3|2.75|2.75|*
OS-EXT-SRV-ATTR:reservation_id|2.3|2.3|2.75|2.75|*
OS-EXT-SRV-ATTR:root_device_name|2.3|2.3|2.75|2.75|*
OS-EXT-SRV-ATTR:user_data|2.3|2.3|2.75||*
user_data||||2.57
locked|2.9|2.9|2.9|2.9
locked_reason|2.73|2.73|2.73|2.73
host_status|2.16|2.16|2.75|2.75
description|2.19|2.19|2.19|2.19
tags|2.26|2.26|2.26|2.26
trusted_image_certificates|2.63|2.63|2.63|2.63
server_groups|2.71||2.71|2.71
pinned_availability_zone|2.96|2.96|2.96|2.96
scheduler_hints|2.100|2.100|2.100|2.100
"""


def expected(shape: str, version: tuple[int, int]) -> dict[str, str | None]:
    """key → rule, of a shape at a version."""
    found: dict[str, str | None] = {}
    for line in TABLE.split():
        key, *ranges = line.split("|")
        text = ranges[SHAPES.index(shape)]
        if text and version in span(text):
            found[key] = ATTRIBUTES if ranges[4:] == ["*"] else None
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", LINES)
def test_a_shape_has_just_the_keys_of_its_version(shape: str, text: str) -> None:
    version = parse(text)
    plan = SERVER.plan(version, shape)
    keys = [key for key, _, _ in plan]
    assert len(keys) == len(set(keys)), "no key twice"
    assert {key: gate for key, _, gate in plan} == expected(shape, version)


class Asking:
    """A request of somebody who may do what is named."""

    version = (2, 3)

    def __init__(self, *rules: str) -> None:
        self.rules, self.asked = rules, 0

    def allowed(self, rule: str, target: Any = None) -> bool:
        self.asked += 1
        return rule in self.rules


def test_a_gate_is_asked_once_for_a_whole_list_and_hides_its_keys() -> None:
    for rules, shown in (((), False), ((ATTRIBUTES,), True)):
        asking = Asking(*rules)
        keys = [key for key, _ in SERVER._open(asking, "detail", None)]
        assert ("OS-EXT-SRV-ATTR:host" in keys) is shown
        assert asking.asked == 1
