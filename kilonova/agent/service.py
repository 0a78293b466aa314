"""One agent process: one address on the bus, one clock, one file of memory, one driver with one or thousands of hosts.

It wires the rooms of `agent` together and decides their order at start: beat, the first hosts to the conductor and to
placement, ready, the others. It reaches the control plane only by call rows and placement's API.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from kilonova.agent.claims import Claims
from kilonova.agent.dispatch import Dispatch
from kilonova.agent.periodic import Task, Timetable
from kilonova.agent.reports import Reporter, Told
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import AgentState
from kilonova.agent.tracker import FIRST, Providers, Tracker
from kilonova.agent.verbs import console_output, list_guests, verbs
from kilonova.bus import calls
from kilonova.bus.bus import Bus, Handler
from kilonova.bus.calls import ConsoleOutput, ConsoleText, GuestList, Guests, Refresh, RemoveGuests
from kilonova.core import clock
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, KilonovaError, Unavailable
from kilonova.virt.driver import Driver, Inventory, Lifecycle, need

LOG = logging.getLogger(__name__)

_RETRY: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between tries to reach a conductor at start
_ASK_EACH: Final = 60.0  # seconds: how long a lost `refresh_hosts` may leave a disabled trait wrong
_COMPARE_EACH: Final = 600.0  # seconds: how long a provider deleted by hand stays away
_RESOURCES_EACH: Final = 60.0  # seconds, when `update_resources_interval` is 0
_PRUNE_EACH: Final = 300.0
_FIRST_WAIT: Final = 5.0  # seconds that the other hosts wait for the first ones


class Agent:
    """`start()` returns at once; `wait_ready` when conductor and placement know the first hosts."""

    def __init__(
        self,
        agent_id: str,
        bus: Bus,
        driver: Driver,
        placement: Providers,
        settings: AgentSettings,
        state_dir: str | Path,
    ) -> None:
        self.id, self._bus, self._driver, self._settings = agent_id, bus, driver, settings
        self._state = AgentState(state_dir)
        self.epoch = self._state.begin()
        self._hosts: Sequence[str] = need(driver, Inventory).hosts()
        self._claims = Claims(driver, settings)
        self._reporter = Reporter(agent_id, self.epoch, bus, driver, self._state, settings, self._claims)
        self._tracker = Tracker(placement, driver, self._state, settings)
        self._dispatch = Dispatch(bus, driver, self._state, self._moved, settings.max_concurrent_builds)
        self._timetable = Timetable(self._tasks())
        self._known = threading.Event()
        self._failures = 0
        self._ask_at = clock.monotonic()
        self._refresh: set[str] = set()
        self._lock = threading.Lock()
        self._stop_serving: Callable[[], None] | None = None

    def start(self) -> None:
        """Take verbs and begin to report, in the background."""
        self._stop_serving = self._bus.serve("agent", self.handlers(), address=self.id)
        self._timetable.start()

    def handlers(self) -> dict[str, Handler]:
        """What it answers, for `Bus.serve`."""
        return {
            **self._dispatch.handlers(verbs(self._claims)),
            calls.console_output.name: self._console_output,
            calls.list_guests.name: self._list_guests,
            calls.remove_guests.name: self._remove_guests,
            calls.refresh_hosts.name: self._refresh_hosts,
        }

    def wait_ready(self, timeout: float) -> bool:
        """Whether within `timeout` seconds the conductor knows all hosts and placement the first ones."""
        begun = clock.monotonic()
        return self._known.wait(timeout) and self._tracker.first_done.wait(timeout - (clock.monotonic() - begun))

    @property
    def settled(self) -> bool:
        """Whether placement has everything of all hosts."""
        return self._known.is_set() and self._tracker.idle

    def stop(self) -> None:
        """Finish what runs, then stop. Guests stay as they are."""
        self._retire()
        self._dispatch.stop()
        self._tracker.stop()
        self._state.close()

    def _retire(self) -> None:
        if self._stop_serving is not None:
            self._stop_serving()
        self._timetable.stop()

    # -- handlers

    def _console_output(self, _ctx: Context, asked: ConsoleOutput) -> ConsoleText:
        return console_output(self._driver, asked)

    def _list_guests(self, _ctx: Context, asked: GuestList) -> Guests:
        return list_guests(self._driver, asked)

    def _remove_guests(self, _ctx: Context, asked: RemoveGuests) -> None:
        for guest in asked.guests:
            LOG.warning("Guest %s on host %s is removed: its server is not there", guest.server, guest.host)
            need(self._driver, Lifecycle).destroy(guest.host, guest.server)
            self._moved(guest.host)

    def _refresh_hosts(self, _ctx: Context, asked: Refresh) -> None:
        with self._lock:
            self._refresh.update(asked.hosts or self._hosts)
        self._timetable.hasten("refresh")

    def _moved(self, host: str) -> None:
        """What guests hold of the host has changed: told with the next beat, and at once where guests have CPUs or
        devices for themselves, of which the scheduler knows only what it is told.
        """
        self._reporter.mark(host)
        if self._known.is_set() and self._claims.matters(host):
            try:
                self._note(self._reporter.tell_marked())
            except KilonovaError as error:
                LOG.debug("What %s has left is told with the next beat: %s", host, error.text)

    # -- by the clock

    def _tasks(self) -> tuple[Task, ...]:
        resources = self._settings.update_resources_interval
        tasks = [
            Task("beat", self._settings.report_interval, self._beat, at_start=True),
            Task("refresh", float("inf"), self._send_refresh),
            Task("prune", _PRUNE_EACH, self._prune),
        ]
        if resources >= 0 and self._settings.periodic_enable:
            tasks.append(Task("resources", resources or _RESOURCES_EACH, self._resources))
            tasks.append(Task("compare", _COMPARE_EACH, self._compare))
        return tuple(tasks)

    def _beat(self) -> float | None:
        """Beat, report, and on the first success introduce all hosts. Answers a short wait while nobody answers."""
        first = not self._known.is_set()
        ask = first or clock.monotonic() >= self._ask_at
        try:
            reply = self._reporter.beat(self._dispatch.in_hand(), ask=ask, first=first)
            if reply.disabled is not None:
                self._ask_at = clock.monotonic() + _ASK_EACH
                self._tracker.set_disabled(self._hosts, reply.disabled)
            if reply.unknown:
                self._reporter.forget()
            if reply.unknown or first:
                self._introduce()
            else:
                self._note(self._reporter.tell_marked())
        except Unavailable as error:
            self._failures += 1
            if self._failures == 1:
                LOG.warning("The agent %s cannot report: %s", self.id, error.text)
            early = _RETRY[min(self._failures, len(_RETRY)) - 1]
            return early if not self._known.is_set() else None
        except Conflict as error:
            LOG.error("The agent %s takes no more verbs: %s", self.id, error.text)
            self._retire()
            return None
        self._failures = 0
        return None

    def _introduce(self) -> None:
        first, others = self._hosts[:FIRST], self._hosts[FIRST:]
        self._note(self._reporter.tell(first))
        if not self._tracker.first_done.is_set():
            self._tracker.start(self._hosts)
            self._tracker.first_done.wait(_FIRST_WAIT)
        self._note(self._reporter.tell(others))
        if not self._known.is_set():
            LOG.info("The agent %s serves %s hosts (epoch %s)", self.id, len(self._hosts), self.epoch)
        self._known.set()
        self._tracker.update(others)

    def _send_refresh(self) -> float | None:
        with self._lock:
            asked, self._refresh = self._refresh, set()
        if not asked:
            return None
        hosts = [host for host in self._hosts if host in asked]
        try:
            self._note(self._reporter.tell(hosts, always=True))
        except Unavailable:
            with self._lock:
                self._refresh |= asked
            return self._settings.report_interval
        return None

    def _note(self, answers: Iterable[Told]) -> None:
        for told in answers:
            self._tracker.set_disabled(told.hosts, told.disabled)
            for host in sorted(told.refused):
                LOG.error("Host %s is not ours: it has another node uuid on record, or another agent serves it", host)

    def _resources(self) -> float | None:
        """Report and track what changed about the hosts themselves."""
        if self._known.is_set():
            self._note(self._reporter.tell(self._hosts))
            self._tracker.update(self._hosts)
        return None

    def _compare(self) -> float | None:
        if self._known.is_set() and self._tracker.idle:
            self._tracker.compare(self._hosts)
        return None

    def _prune(self) -> float | None:
        self._state.prune()
        return None
