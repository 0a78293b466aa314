"""A conductor as a process of its own."""

from __future__ import annotations

from typing import Any

from kilonova.cells.cells import API, CELL0
from kilonova.conductor.heartbeat import CONDUCTOR, Heartbeat
from kilonova.conductor.reconcilers.network_cache import NetworkCache
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.conductor.rounds import Rounds
from kilonova.conductor.service import Conductor
from kilonova.core.errors import Unavailable
from kilonova.db.prepare import require_cell
from kilonova.wiring.parts import Cloud, Part, process
from kilonova.wiring.region import Region, own_cell, region
from kilonova.workflows.catalogue import WORKFLOWS, recorder


class CellZeroMissing(Unavailable):
    """Servers that find no host have no place."""

    code, message = "cell0_missing", "The registry has no cell0 yet: run `kilonova cell map_cell0`."


def conductor(conf: Any, instance: int = 1) -> Cloud:
    """A conductor: of its cell where `[database]` names one, and of the API database where its broker is the region's.

    instance: tells several on one host apart; each must be the same after a restart.
    """
    ground = region(conf, of_cell=True)
    try:
        cell = own_cell(conf, ground.cells)
        journals = [*(_region_journals(ground) if ground.of_region else []), *([cell] if cell else [])]
    except BaseException:
        ground.close()
        raise
    world = ground.world(journals)
    me = conf.host if instance == 1 else f"{conf.host}:{instance}"
    engine = Conductor(world, WORKFLOWS, recorder(), me=me, host=conf.host, told=NetworkCache(world).told)
    more: dict[str, Any] = {}
    parts: list[Any] = []
    if cell is not None:
        database = ground.cells.database(cell)
        new_hosts = NewHosts.from_conf(conf, all_in_one=False)
        more = AgentReports(
            database, ground.cells.api, cell, ground.bus, new_hosts, engine.agent_seen, ground.directory
        ).handlers()
        parts.append(Heartbeat(database, me, CONDUCTOR, conf.report_interval))
    parts.append(Part(lambda: engine.start(ground.bus, more), engine.close))
    if API in journals:
        parts.append(Rounds(world))
    return process([Part(ground.bus.connect, ground.leave), *parts], ground.databases)


def _region_journals(ground: Region) -> list[str]:
    """The databases above the cells, which must have their tables."""
    cell0 = next((cell for cell in ground.cells.every() if cell.uuid == CELL0), None)
    if cell0 is None:
        raise CellZeroMissing
    require_cell(cell0.database)
    return [API, CELL0]
