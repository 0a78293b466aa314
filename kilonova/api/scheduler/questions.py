"""/simulate, /capacity, /recording: what the scheduler would decide, how many more servers fit, what a replay needs.
Nothing is written.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kilonova.api.compute.servers import hints_as_lists
from kilonova.api.scheduler.policy import CAPACITY, RECORD, SIMULATE
from kilonova.api.scheduler.story import fate, story
from kilonova.compute import dry_run, recording
from kilonova.compute.dry_run import Asked
from kilonova.http.fields import UUID, Field, Int, Obj, Param, Query, Raw, Str, wrap
from kilonova.http.op import Op, Request

_TEXT = Str(1, 255)
_MOST_SERVERS = 1000
_MOST_RECORDED, _RECORDED = 5000, 1000

_ASKED = (
    Field("flavor", _TEXT),
    Field("image", _TEXT),
    Field("availability_zone", _TEXT),
    Field("hints", Obj(Field("group", UUID), open=True)),
    Field("project_id", _TEXT),
    Field("spec", Raw({"type": "object"})),
    Field("server", UUID),
)
SIMULATION = wrap("simulate", Obj(*_ASKED, Field("count", Int(1, _MOST_SERVERS)), Field("host", _TEXT)))
MEASURE = wrap("capacity", Obj(*_ASKED))

RECORDING = Query((Param("decisions", Int(1, _MOST_RECORDED)),), strict=True)


def _asked(body: dict[str, Any]) -> Asked:
    given = {name: body[name] for name in ("flavor", "image", "availability_zone", "project_id", "spec", "server")
             if name in body}  # fmt: skip
    return Asked(hints=hints_as_lists(body.get("hints", {})), **given)


def simulate(req: Request) -> dict[str, Any]:
    """A decision that is thought through and not carried out."""
    body = req.body["simulate"]
    decision = dry_run.simulate(req.world, req.ctx, _asked(body), body.get("count", 1))
    document = story(decision)
    if "host" in body:
        document["fate"] = fate(decision, body["host"])
    return {"decision": document}


def capacity(req: Request) -> dict[str, Any]:
    """How many more fit, by zone and aggregate, and what runs out first."""
    found = dry_run.capacity(req.world, req.ctx, _asked(req.body["capacity"]))
    return {"capacity": msgspec.to_builtins(found)}


def record(req: Request) -> dict[str, Any]:
    """The newest requests, oldest first, and the hosts as they are."""
    found = recording.record(req.world, int(req.query.get("decisions", _RECORDED)))
    return {"recording": msgspec.to_builtins(found)}


OPS: tuple[Op, ...] = (
    Op("POST", "/simulate", simulate, policy=SIMULATE, body=SIMULATION, errors=(400, 503)),
    Op("POST", "/capacity", capacity, policy=CAPACITY, body=MEASURE, errors=(400, 503)),
    Op("GET", "/recording", record, policy=RECORD, query=RECORDING, errors=(503,)),
)
