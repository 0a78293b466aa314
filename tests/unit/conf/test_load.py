"""Nova's options, read from files of an operator who may have mistyped some."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from kilonova.conf import load as module
from kilonova.conf.load import APPLICATIONS, COMPUTE, ConfigError, load


def conf_file(tmp_path: Path, text: str, name: str = "kilonova.conf") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_defaults_then_files_in_order_then_overrides(tmp_path: Path) -> None:
    first = conf_file(tmp_path, "[quota]\ninstances = 1\ncores = 2\nram = 3\n", "a.conf")
    second = conf_file(tmp_path, "[quota]\ncores = 20\nram = 30\n", "b.conf")
    conf = load([first, second], {"quota.ram": 300})
    assert (conf.quota.instances, conf.quota.cores, conf.quota.ram, conf.quota.key_pairs) == (1, 20, 300, 100)


def test_what_depends_on_the_host_is_filled_in_and_can_be_set() -> None:
    conf = load()
    assert conf.host == socket.gethostname()
    assert socket.inet_aton(conf.my_ip)
    assert load(overrides={"host": "h1", "my_ip": "192.0.2.1"}).host == "h1"


def test_two_configurations_know_nothing_of_each_other() -> None:
    one, other = load(overrides={"quota.instances": 1}), load()
    assert (one.quota.instances, other.quota.instances) == (1, 10)
    assert "quota" not in cfg.CONF


def test_placement_has_its_own_meaning_of_the_group_placement() -> None:
    conf = load(application="placement")
    assert conf.placement.allocation_conflict_retry_count == 10
    assert "endpoint_override" not in conf.placement


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[quota]\ninstances = ten\n", r"\[quota\] instances cannot be used: .*in .*kilonova.conf.* 'ten'"),
        ("[quota]\ninstances = -2\n", r"\[quota\] instances cannot be used: .*-1"),
        ("[api]\nenable_instance_password = perhaps\n", r"\[api\] enable_instance_password"),
        ("quota\n", "cannot be read: .*kilonova.conf:1"),
    ],
)
def test_a_bad_value_is_refused_at_once_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load([conf_file(tmp_path, text)])
    assert "\n" not in str(caught.value)
    assert "LocationInfo" not in str(caught.value)


def test_a_missing_file_and_a_bad_override_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.conf"):
        load([tmp_path / "none.conf"])
    with pytest.raises(ConfigError, match="instances cannot be 'x'"):
        load(overrides={"quota.instances": "x"})
    with pytest.raises(ConfigError, match="nothing"):
        load(overrides={"nothing": 1})


NOVA_CONF = """
[DEFAULT]
debug = true
force_raw_images = false
reprot_interval = 5
[libvirt]
virt_type = kvm
[quota]
key-pairs = 5
[neutron]
auth_type = password
username = nova
service-type = network
[placement]
randomize_allocation_candidates = true
[keystone_authtoken]
auth_url = http://x
[oslo_messaging_rabbit]
rabbit_ha_queues = true
[oslo_messaging_notifications]
driver = messagingv2
[placement_database]
sync_on_startup = true
[wonderland]
alice = 1
"""


def test_options_without_effect_are_said_once_each_and_misspelt_ones_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        load([conf_file(tmp_path, NOVA_CONF)])
    words: dict[str, set[str]] = {"known to Nova": set(), "not needed": set(), "unknown": set()}
    for record in caplog.records:
        line = record.getMessage()
        kind = next(kind for kind in words if kind in line)
        words[kind].add(line.split()[1])
    assert words == {
        "known to Nova": {"force_raw_images", "virt_type"},
        "not needed": {"sync_on_startup"},
        "unknown": {"reprot_interval", "alice"},
    }
    assert len(caplog.records) == 5


def contract() -> dict[tuple[str, str], dict[str, Any]]:
    """The contract's rows as they were copied to the package: names only are there, so what is checked is the names."""
    known = json.loads(Path(module.__file__).with_name("known_options.json").read_bytes())
    return {(group, name): {} for group, names in known.items() for name in names}


# Options of ours that Nova's own list does not have: other libraries' or Kilonova's.
OURS = {
    ("DEFAULT", "transport_url"), ("DEFAULT", "rpc_response_timeout"), ("DEFAULT", "restrict_zones"),
    ("scheduler", "decisions_kept"), ("scheduler", "decisions_kept_seconds"),
    ("scheduler", "log_hosts"), ("scheduler", "request_filters"), ("filter_scheduler", "project_tags_allowed"),
    *(("oslo_middleware", option.dest) for option in COMPUTE["oslo_middleware"]),
    *(("cors", option.dest) for option in COMPUTE["cors"]),
    *(("oslo_messaging_notifications", option.dest) for option in COMPUTE["oslo_messaging_notifications"]),
}  # fmt: skip


OUR_GROUPS = {"simulated", "embedded", "prometheus"}


def test_every_declared_option_of_compute_has_novas_name() -> None:
    declared = {(group, option.dest) for group, options in COMPUTE.items() for option in options}
    declared = {row for row in declared if row[0] not in OUR_GROUPS}
    assert declared - set(contract()) - OURS == set()


@pytest.mark.parametrize("application", sorted(APPLICATIONS))
def test_every_option_says_what_it_is_for(application: str) -> None:
    for group, options in APPLICATIONS[application].items():
        for option in options:
            assert option.help, f"[{group}] {option.name}"
            assert option.help.endswith("."), f"[{group}] {option.name}"
