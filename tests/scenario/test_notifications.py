"""Notifications of a whole cloud: who listens hears of each request for hosts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scenario.stage import boot, stage

CONFIG = """
[oslo_messaging_notifications]
driver = log
[notifications]
notification_format = both
"""


def test_a_boot_is_told_in_both_formats_with_the_server_and_the_user_who_asked(tmp_path: Path) -> None:
    with stage(tmp_path / "state", config=CONFIG) as here:
        server = boot(here.demo.at("2.96"))["id"]
        user = here.demo.user
    lines = (tmp_path / "state/kilonova.log").read_text().splitlines()
    told = [json.loads(line[line.index("{"):]) for line in lines if '"event_type"' in line]
    assert sorted((row["event_type"], row["publisher_id"].split(":")[0].split(".")[0]) for row in told) == [
        ("scheduler.select_destinations.end", "nova-scheduler"), ("scheduler.select_destinations.end", "scheduler"),
        ("scheduler.select_destinations.start", "nova-scheduler"), ("scheduler.select_destinations.start", "scheduler"),
    ]  # fmt: skip
    for row in told:
        payload = row["payload"]
        old = payload.get("request_spec", {}).get("instance_properties")
        found = (old["uuid"], old["user_id"]) if old else tuple(
            payload["nova_object.data"][name] for name in ("instance_uuid", "user_id")
        )  # fmt: skip
        assert found == (server, user)
