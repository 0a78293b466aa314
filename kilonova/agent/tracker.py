"""Keeps placement's providers as the hosts are: inventory and traits, in the background, only what differs.

Generations are read from answers, never assumed. What placement took is remembered over restarts as a fingerprint per
host; one list call then shows whether it still has the providers. It must not know the conductor.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from kilonova.agent import inventory
from kilonova.agent.inventory import Provider
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import AgentState
from kilonova.core import context
from kilonova.core.errors import Conflict, Invalid, KilonovaError
from kilonova.virt.driver import Driver, Inventory, need

LOG = logging.getLogger(__name__)

FIRST: Final = 40  # hosts whose providers make the agent ready; the others follow in the background
_WORKERS: Final = 2
_TRIES: Final = 4  # generation conflicts per host (workflow facts 11)
_LIST_ALL: Final = 20  # hosts from which on one list of everything is cheaper than a look-up each
_BACKOFF: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # seconds, while placement does not answer


class Providers(Protocol):
    """What the tracker needs of placement (`clients.placement.Placement`)."""

    def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> int: ...

    def list_providers(self, **filters: Any) -> list[dict[str, Any]]: ...

    def delete_provider(self, uuid: str) -> bool: ...

    def ensure_resource_class(self, name: str) -> None: ...

    def ensure_trait(self, name: str) -> None: ...

    def inventory(self, uuid: str) -> tuple[dict[str, Any], int]: ...

    def set_inventory(self, uuid: str, inventory: dict[str, Any], generation: int) -> int: ...

    def traits(self, uuid: str) -> tuple[list[str], int]: ...

    def set_traits(self, uuid: str, traits: Iterable[str], generation: int) -> int: ...


class Tracker:
    """A queue of hosts to bring up to date and a few threads that exist only while it is not empty."""

    def __init__(self, placement: Providers, driver: Driver, state: AgentState, settings: AgentSettings) -> None:
        """CardDivided, CpuSetsInvalid."""
        self._placement, self._state, self._settings = placement, state, settings
        self._inventory, self._capabilities = need(driver, Inventory), driver.capabilities()
        self._prints = state.prints("provider")
        self._disabled: set[str] = set()
        self._lock = threading.Lock()
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._threads: set[threading.Thread] = set()
        self._waiting = frozenset[str]()
        self._stopping = threading.Event()
        self.first_done = threading.Event()
        for host in self._inventory.hosts()[:1]:
            self._wanted(host)  # what cannot be offered at all is said at the start

    def start(self, hosts: Sequence[str]) -> None:
        """Compare with placement and begin; `first_done` is set when the first of them are done. May be retried."""
        first = hosts[:FIRST]
        self._check(hosts if self._prints else ())
        with self._lock:
            self._waiting = frozenset(host for host in first if self._differs(host))
        if not self._waiting:
            self.first_done.set()
        self.update(first)

    def update(self, hosts: Iterable[str]) -> None:
        """Bring these hosts' providers up to date, as far as they differ from what placement took last."""
        with self._lock:
            for host in hosts:
                if host not in self._queued and self._differs(host):
                    self._queue.append(host)
                    self._queued.add(host)
            wanted = min(_WORKERS, len(self._queue))
            while not self._stopping.is_set() and len(self._threads) < wanted:
                thread = threading.Thread(target=self._work, name="agent-tracker", daemon=True)
                self._threads.add(thread)
                thread.start()

    def compare(self, hosts: Sequence[str]) -> None:
        """Look whether placement still has the providers, and make again what is missing. RemoteUnavailable."""
        self._check(hosts)
        self.update(hosts)

    def set_disabled(self, hosts: Iterable[str], disabled: Iterable[str]) -> None:
        """Of `hosts`, these are disabled and the others are not; changes are queued."""
        asked, off = frozenset(hosts), frozenset(disabled)
        with self._lock:
            changed = (self._disabled & asked) ^ (off & asked)
            self._disabled ^= changed
        self.update(sorted(changed))

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or being sent."""
        with self._lock:
            return not self._queued

    def stop(self) -> None:
        """End after the requests under way."""
        self._stopping.set()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(timeout=10)

    def _wanted(self, host: str) -> Provider:
        facts = self._inventory.facts(host)
        return inventory.provider(facts, self._settings, self._capabilities, disabled=host in self._disabled)

    def _differs(self, host: str) -> bool:
        return self._prints.get(host) != self._wanted(host).fingerprint

    def _check(self, hosts: Sequence[str]) -> None:
        """Forget the fingerprint of every host whose provider is not in placement under its name."""
        known = [(host, self._inventory.facts(host)) for host in hosts if host in self._prints]
        if not known:
            return
        if len(known) >= _LIST_ALL:
            found = self._placement.list_providers()
        else:
            found = [row for _, facts in known for row in self._placement.list_providers(uuid=facts.uuid)]
        names = {row["uuid"]: row["name"] for row in found}
        gone = [host for host, facts in known if names.get(facts.uuid) != facts.node]
        if gone:
            LOG.warning("%s of %s providers are not in placement and are made again", len(gone), len(known))
        for host in gone:
            del self._prints[host]
        self._state.forget_prints("provider", gone)

    # -- the background

    def _work(self) -> None:
        context.service_context()
        failures = 0
        while not self._stopping.is_set():
            host = self._take()
            if host is None:
                return
            try:
                self._bring(host)
                failures = 0
            except (Conflict, Invalid) as error:  # this host's own trouble
                LOG.error("The provider of %s could not be brought up to date: %s", host, error.text)
            except KilonovaError as error:  # not answering, or not letting us in: everybody's
                if failures == 0:
                    LOG.warning("Placement cannot be used, trying again: %s", error.text)
                self._finish(host, again=True)
                self._stopping.wait(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
                failures += 1
                continue
            except Exception:
                LOG.exception("The provider of %s could not be brought up to date", host)
            self._finish(host)

    def _take(self) -> str | None:
        with self._lock:
            if not self._queue:
                self._threads.discard(threading.current_thread())
                return None
            return self._queue.popleft()

    def _finish(self, host: str, *, again: bool = False) -> None:
        with self._lock:
            if again:
                self._queue.appendleft(host)
                return
            self._queued.discard(host)
            self._waiting -= {host}
            if not self._waiting:
                self.first_done.set()

    def _bring(self, host: str) -> None:
        wanted = self._wanted(host)
        for attempt in range(_TRIES):
            try:
                self._send(wanted)
                self._send_cards(wanted)
                break
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
        self._prints[host] = wanted.fingerprint
        self._state.keep_prints("provider", {host: self._prints[host]})
        if self._wanted(host).fingerprint != wanted.fingerprint:  # disabled or enabled while it was being sent
            self._bring(host)

    def _send_cards(self, wanted: Provider) -> None:
        """The providers below it, and those of cards that are offered no more away."""
        if not self._settings.report_in_placement:
            return
        for card in wanted.children:
            for name in filter(_is_custom, card.inventory):
                self._placement.ensure_resource_class(name)
            for name in filter(_is_custom, card.traits):
                self._placement.ensure_trait(name)
            self._send(card, wanted.uuid)
        known = {card.uuid for card in wanted.children}
        for row in self._placement.list_providers(in_tree=wanted.uuid):
            if row["uuid"] not in known and row["name"].startswith(f"{wanted.name}_0"):  # a card's address follows
                try:
                    self._placement.delete_provider(row["uuid"])
                except Conflict as error:
                    LOG.error("The card %s is offered no more and still in use: %s", row["name"], error.text)

    def _send(self, wanted: Provider, parent: str | None = None) -> None:
        generation = self._placement.ensure_provider(wanted.uuid, wanted.name, parent)
        existing: dict[str, Any] = {}
        traits: list[str] = []
        if generation:  # a provider that was never changed has nothing to keep
            existing, _ = self._placement.inventory(wanted.uuid)
            traits, generation = self._placement.traits(wanted.uuid)
        sent = inventory.with_ratios(wanted, existing)
        if not _same(sent, existing):
            generation = self._placement.set_inventory(wanted.uuid, sent, generation)
        names = inventory.with_traits(wanted, traits)
        if names != frozenset(traits):
            self._placement.set_traits(wanted.uuid, names, generation)


def _is_custom(name: str) -> bool:
    return name.startswith("CUSTOM_")


def _same(sent: dict[str, dict[str, Any]], existing: dict[str, Any]) -> bool:
    """Whether placement has this inventory already; other keys it may answer do not count."""
    if sent.keys() != existing.keys():
        return False
    return all(existing[name].get(key) == value for name, row in sent.items() for key, value in row.items())
