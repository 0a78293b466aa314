"""What agents tell: beats, and records of their hosts. Handlers of the rows `agent_beat` and `host_reports`.

A new host becomes a service row and a compute node row, is mapped to this cell when discovery is automatic, and the
scheduler hears of every change. It must not know how agents or drivers work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from kilonova.bus import calls
from kilonova.bus.bus import Bus, Handler
from kilonova.bus.calls import AgentBeat, BeatReply, HostReport, HostReports, HostsChanged
from kilonova.core import clock, json, liveness
from kilonova.core.context import Context
from kilonova.core.errors import Unavailable
from kilonova.db.queries import hosts
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

AgentSeen = Callable[[str, int, tuple[str, ...]], object]


@dataclass(frozen=True, slots=True)
class NewHosts:
    """What happens to a host that reports for the first time.

    discover: it is mapped to the cell at once, not only by `manage discover_hosts`. enable: its service starts enabled.
    down_time: seconds of silence after which a host of another agent is a new one's.
    """

    discover: bool = True
    enable: bool = True
    down_time: float = 60.0

    @classmethod
    def from_conf(cls, conf: Any, *, all_in_one: bool) -> NewHosts:
        """Discovered in the all-in-one, else when `[scheduler]discover_hosts_in_cells_interval` is above 0."""
        discover = all_in_one or conf.scheduler.discover_hosts_in_cells_interval > 0
        down_time = liveness.down_after(conf.report_interval, conf.service_down_time)
        return cls(discover, conf.enable_new_services, down_time)


class AgentReports:
    """The handlers for one cell. agent_seen(agent, epoch, in_hand) is called after every beat, for the open verbs."""

    def __init__(
        self,
        cell: Database,
        api: Database,
        cell_uuid: str,
        bus: Bus,
        new_hosts: NewHosts = NewHosts(),
        agent_seen: AgentSeen | None = None,
        directory: hosts.AgentDirectory | None = None,
    ) -> None:
        self._cell, self._api, self._cell_uuid, self._bus, self._new_hosts = cell, api, cell_uuid, bus, new_hosts
        self._agent_seen, self._directory = agent_seen, directory
        self._mapped: set[str] = set()  # hosts of which we know that they are mapped

    def handlers(self) -> dict[str, Handler]:
        """For `Bus.serve`."""
        return {calls.agent_beat.name: self._beat, calls.host_reports.name: self._reports}

    def _beat(self, _ctx: Context, told: AgentBeat) -> BeatReply:
        beat = hosts.agent_beat(self._cell, told.agent, told.epoch)
        if not beat.known:
            return BeatReply(unknown=True, time=clock.utcnow())
        if beat.restarted:
            LOG.info("Agent %s has restarted with epoch %s and %s hosts", told.agent, told.epoch, told.hosts)
            if self._directory is not None:
                self._directory.forget()
        if self._agent_seen is not None:
            self._agent_seen(told.agent, told.epoch, told.in_hand)
        unknown = told.first and not hosts.release_unless(self._cell, told.agent, told.hosts)
        disabled = self._disabled(told.agent) if told.ask else None
        return BeatReply(unknown=unknown, disabled=disabled, time=clock.utcnow())

    def _disabled(self, agent: str) -> tuple[str, ...]:
        with self._cell.read() as connection:
            return hosts.disabled_hosts(connection, agent)

    def _reports(self, _ctx: Context, told: HostReports) -> BeatReply:
        nodes = [node_row(report) for report in told.reports]
        done = hosts.register(
            self._cell, told.agent, told.epoch, told.version, nodes,
            enable=self._new_hosts.enable, down_time=self._new_hosts.down_time,
        )  # fmt: skip
        for host, other in done.others:
            LOG.error("Agent %s reports host %s, which agent %s serves and is alive", told.agent, host, other)
        for host in set(done.refused) - {host for host, _ in done.others}:
            LOG.error("Host %s reports a node uuid that is not the one on record; it is not taken into service", host)
        names = [report.host for report in told.reports if report.host not in set(done.refused)]
        if done.new and self._directory is not None:
            self._directory.forget()
        if self._new_hosts.discover:
            self._map(names, set(done.new))
        self._tell_scheduler(names)
        return BeatReply(disabled=done.disabled, refused=done.refused)

    def _map(self, names: list[str], new: set[str]) -> None:
        # a host may be on record and not mapped, when we died in between: the agent then sends its report again
        unsure = [host for host in names if host in new or host not in self._mapped]
        if unsure:
            found = hosts.map_hosts(self._api, self._cell_uuid, unsure)
            if found:
                LOG.info("Mapped %s new hosts to cell %s", len(found), self._cell_uuid)
            self._mapped.update(unsure)

    def _tell_scheduler(self, names: list[str]) -> None:
        if names:
            try:
                self._bus.cast(calls.hosts_changed, HostsChanged(tuple(names)))
            except Unavailable as error:
                LOG.debug("No scheduler to tell of %s changed hosts: %s", len(names), error.text)


def node_row(report: HostReport) -> dict[str, Any]:
    """A report as a row of compute_nodes."""
    row = msgspec.structs.asdict(report)
    row["hypervisor_hostname"] = row.pop("node")
    for name in ("cpu_info", "supported_instances", "stats"):
        row[name] = json.dump_str(row[name])
    row["free_ram_mb"] = report.memory_mb - report.memory_mb_used
    row["free_disk_gb"] = report.local_gb - report.local_gb_used
    return row
