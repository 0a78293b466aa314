"""What handlers say of a request stands in its line; requests are counted by what was asked for, not by whose id."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from kilonova.core.errors import NotFound
from kilonova.core.metrics import Meters
from kilonova.http.app import App, Service
from kilonova.http.dialect import ComputeDialect
from kilonova.http.metrics import METRICS
from kilonova.http.middleware import Settings, pipeline
from kilonova.http.op import Op, Request
from kilonova.http.transport import WsgiTransport
from tests.unit.core.test_log import _root_logger, text_of, written  # noqa: F401
from tests.unit.core.test_metrics import look


def weigh(req: Request) -> dict[str, Any]:
    if req.path["id"] == "none":
        raise NotFound
    req.say(grams=12, ripe=False)
    return {}


ROWS = (
    Op("GET", "/plums/{id}", weigh, auth=False, errors=(404,)),
    Op("GET", "/", lambda req: {}, auth=False),
    Op("POST", "/plums/{id}/action", lambda req: {}, auth=False, action="peel"),
)


def serving(meters: Meters | None = None) -> WsgiTransport:
    app = App(Service("orchard", ROWS, None, ComputeDialect()))
    return WsgiTransport(pipeline(app, service="orchard", settings=Settings(meters=meters or Meters(on=False))))


def test_fields_that_a_handler_says_end_the_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kilonova.access"):
        serving().send("GET", "http://h/plums/7", {}, None)
        serving().send("GET", "http://h/plums/none", {}, None)
    first, second = (record.getMessage() for record in caplog.records if record.name == "kilonova.access")
    assert first.endswith(" grams: 12 ripe: False")
    assert "grams" not in second


@pytest.mark.usefixtures("_root_logger")
def test_a_line_in_json_has_all_of_it_as_fields(tmp_path: Path) -> None:
    path = written(tmp_path, use_json=True)
    serving().send("GET", "http://h/plums/7?x=1", {}, None)
    lines = [json.loads(line) for line in text_of(path).splitlines()]
    fields = next(line["extra"] for line in lines if line["name"] == "kilonova.access")
    assert fields["time"] > 0
    fields = {name: value for name, value in fields.items() if name not in ("time", "address")}
    assert fields == {
        "method": "GET", "uri": "/plums/7?x=1", "status": "200", "len": "2", "microversion": "-", "grams": 12,
        "ripe": False,
    }  # fmt: skip


def test_requests_are_counted_by_operation_and_class_of_status() -> None:
    meters = Meters(METRICS)
    to = serving(meters)
    for method, path in (("GET", "/plums/1"), ("GET", "/plums/2"), ("GET", "/plums/none"), ("GET", "/"),
                         ("GET", "/pears/1"), ("PULL", "/plums/1")):  # fmt: skip
        to.send(method, f"http://h{path}", {}, None)
    to.send("POST", "http://h/plums/1/action", {}, b'{"peel": null}')
    counts = {what: n for (name, what), n in look(meters).items() if name == "kilonova_http_request_seconds_count"}
    assert counts == {
        "GET /plums/{id} orchard 2xx": 2, "GET /plums/{id} orchard 4xx": 1, "GET / orchard 2xx": 1,
        "none orchard 4xx": 2, "POST /plums/{id}/action peel orchard 2xx": 1,
    }  # fmt: skip
