"""Where metrics are served, and of whom."""

from __future__ import annotations

import re
from pathlib import Path

from kilonova.http.transport import WsgiTransport
from kilonova.wiring import all_in_one
from kilonova.wiring.metrics import TABLES
from tests.scenario.stage import settings
from tests.unit.core.test_metrics import look

SERVICES = {
    "compute/v2.1/": "compute", "identity": "identity", "image": "image", "metadata": "metadata",
    "networking": "network", "placement": "placement", "volume": "volume",
}  # fmt: skip


def test_a_cloud_in_one_process_counts_the_requests_of_every_service(tmp_path: Path) -> None:
    cloud = all_in_one(settings(tmp_path))
    for prefix in SERVICES:
        WsgiTransport(cloud.app).send("GET", f"http://h/{prefix}", {}, None)
    found = look(cloud.app)
    cloud.stop()
    counted = {what.split()[-2] for name, what in found if name == "kilonova_http_request_seconds_count"}
    assert counted == {*SERVICES.values()}
    assert ("kilonova_placement_claims_total", "") in found


def test_a_cloud_may_keep_its_metrics_to_itself(tmp_path: Path) -> None:
    cloud = all_in_one(settings(tmp_path, config="[prometheus]\nenabled = false\n"))
    status, _, _ = WsgiTransport(cloud.app).send("GET", "http://h/metrics", {}, None)
    cloud.stop()
    assert status == 404


def test_the_page_for_operators_names_only_metrics_that_there_are() -> None:
    page = (Path(__file__).parents[3] / "docs/operate/metrics.md").read_text()
    named = {re.sub("_(count|bucket)$", "", name) for name in re.findall(r"kilonova_(?:http|placement)_\w+", page)}
    assert named - {row.name for rows in TABLES.values() for row in rows} == set()
