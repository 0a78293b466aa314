"""The servers of one request, placed one after the other: filter, weigh, claim, then the next sees what is left.

It keeps the working state of one request and nothing beyond it.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice

from kilonova.core.request_spec import Selection
from kilonova.scheduler.candidates import VERSION, Candidates
from kilonova.scheduler.choices import Change, View
from kilonova.scheduler.claim import Attempt, Claims
from kilonova.scheduler.free_amounts import FreeAmounts
from kilonova.scheduler.host_state import HostState, consume, names, shift
from kilonova.scheduler.plugins import Filter, Weigher
from kilonova.scheduler.request import Request
from kilonova.scheduler.stages import narrow, pick_order, run_filters
from kilonova.scheduler.topology import limits_for, offer_of, wanted_by
from kilonova.scheduler.trace import SCORES, Trace
from kilonova.scheduler.weighing import Floats, Ranking

LOG = logging.getLogger(__name__)

Selections = tuple[tuple[Selection, ...], ...]


class Placing:
    """One request's servers being placed, one after the other. Hosts are named by their index in `states`."""

    def __init__(
        self,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        claims: Claims,
        choices: View,
        request: Request,
        states: list[HostState],
        candidates: Candidates,
        trace: Trace,
    ) -> None:
        self._filters = filters
        self._weighers = weighers
        self._claims = claims
        self._choices = choices
        self._request = request
        self._states = states
        self._candidates = candidates
        self._trace = trace
        self._ranking: Ranking | None = None
        self._winners: dict[str, int] = {}
        self._refused: set[int] = set()
        self._skip_filters = False
        self._order: list[int] = list(range(len(states)))
        self._ranked_for = ""
        self._heard: list[Change] = []
        self._room: FreeAmounts | None = FreeAmounts(candidates.usage)
        self._guest = wanted_by(request.spec)
        self._asked: dict[str, str] = {}

    def place(self, server: str) -> bool:
        """Filter, weigh and claim for one server; False when it finds no host."""
        trace, request = self._trace, self._request.placing(server)
        trace.next_round(server)
        with trace.timed("filters"):
            with self._choices.turn() as news:
                self._heed(news)
            alive = self._filtered(request)
        index = self._claimed(server, request, alive)
        if index is None:
            LOG.debug("Unable to successfully claim against any host for server %s", server)
            return False
        self._consume(server, index)
        return True

    def _claimed(self, server: str, request: Request, alive: list[int]) -> int | None:
        """The first host, best first, that is to be had. After a refusal the others are ranked anew only when other
        decisions chose in the meantime.
        """
        trace, tried = self._trace, set[int]()
        while True:
            with trace.timed("weighers"):
                index = self._choose(request, alive, tried)
            if index is None:
                return None
            state = self._states[index]
            LOG.debug("Attempting to claim resources for server %s on %s", server, state.host)
            with trace.timed("claim"):
                taken = self._claims.take(server, self._asked[server])
            trace.attempts.append(Attempt(server, index, state.host, taken))
            if taken:
                self._choices.claimed()
                return index
            self._choices.take_back()
            self._refused.add(index)
            tried.add(index)

    def _choose(
        self, request: Request, alive: list[int], tried: Container[int], room: FreeAmounts | None = None
    ) -> int | None:
        """Rank the hosts and note the best that can be claimed, before any other decision chooses."""
        if not alive:
            return None
        with self._choices.turn() as news:
            if self._heed(news) or self._ranked_for != request.server:
                self._order, self._ranked_for = self._ranked(request, alive), request.server
            for index in self._tried_last(self._order):
                state = self._states[index]
                if index in tried:
                    continue
                if state.uuid not in self._candidates:
                    LOG.debug("%s has no allocation candidate; it cannot be claimed", state.host)
                    continue
                asked = self._candidates.request(state.uuid, offer_of(state, self._guest))
                if room is not None and not room.take(asked):
                    continue
                self._asked[request.server] = asked
                self._choices.choose(state.uuid, request.spec.flavor)
                return index
        return None

    def _tried_last(self, order: list[int]) -> list[int]:
        """A host that was refused to an equal server before is tried again only after all others."""
        return sorted(order, key=self._refused.__contains__) if self._refused else order

    def _heed(self, news: Sequence[Change]) -> bool:
        """Take in what other decisions chose or took back; whether a host of ours changed."""
        if not news:
            return False
        self._heard += news
        index_of = {state.uuid: index for index, state in enumerate(self._states)}
        changed = False
        for provider, flavor, sign in news:
            if (index := index_of.get(provider)) is not None:
                self._states[index] = shift(self._states[index], flavor, sign)
                if self._ranking is not None:
                    self._ranking.update(self._request, index, self._states[index])
                changed = True
        return changed

    def place_together(self, servers: Sequence[str]) -> bool:
        """Choose for several new servers, then claim by one request. False when that is not to be had: then nothing has
        changed, and they are to be placed one after the other, as all that follow: Placement's answer is out of date.
        """
        if self._room is None:
            return False
        before = (list(self._states), self._request, self._order, dict(self._winners), dict(self._trace.winners))
        self._heard = []
        chosen: dict[str, int] = {}
        for server in servers:
            request = self._request.placing(server)
            self._trace.next_round(server)
            with self._trace.timed("filters"):
                alive = self._filtered(request)
            with self._trace.timed("weighers"):
                index = self._choose(request, alive, (), self._room)
            if index is None:
                break
            self._consume(server, index)
            chosen[server] = index
        if len(chosen) == len(servers) and self._took(chosen):
            return True
        self._choices.take_back()
        self._states[:], self._request, self._order, self._winners, self._trace.winners = before
        self._ranking, self._ranked_for, self._room = None, "", None
        self._heed(list(self._heard))
        return False

    def _took(self, chosen: Mapping[str, int]) -> bool:
        wanted = {server: self._asked[server] for server in chosen}
        LOG.debug("Attempting to claim resources for %d servers at once", len(wanted))
        with self._trace.timed("claim"):
            if not self._claims.take_together(wanted):
                return False
        self._choices.claimed()
        self._trace.attempts += [
            Attempt(server, index, self._states[index].host, True) for server, index in chosen.items()
        ]
        return True

    def _filtered(self, request: Request) -> list[int]:
        """Every filter for the first server; for the others those that are not once a request, over the last order."""
        alive = self._order
        if not self._winners:
            alive, self._skip_filters = narrow(request, self._states, alive, self._trace)
        if self._skip_filters:
            return alive
        filters = self._filters
        if self._winners:
            filters = [row for row in filters if not row.once]
        alive = run_filters(filters, request, self._states, alive, self._trace)
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("Filtered %s", names(self._states[index] for index in alive))
        return alive

    def _ranked(self, request: Request, alive: list[int]) -> list[int]:
        if self._ranking is None:
            self._ranking = Ranking(self._weighers, request, self._states)
        scores, parts = self._ranking.scores(alive)
        order = pick_order(alive, scores, request.settings)
        if not self._winners:
            self._note_scores(alive, scores, parts)
        return order

    def _note_scores(self, alive: list[int], scores: Floats, parts: Floats) -> None:
        ranking = self._ranking
        if ranking is None:
            return
        self._trace.weighers = tuple(row.name for row in ranking.weighers)
        best = (-scores).argsort(kind="stable")[:SCORES].tolist()
        self._trace.scores = [
            (self._states[alive[place]].host, float(scores[place]), tuple(parts[:, place].tolist())) for place in best
        ]
        if LOG.isEnabledFor(logging.DEBUG):
            for number, row in enumerate(ranking.weighers):
                raw = ranking.raw[number, alive[:SCORES]].tolist()
                LOG.debug("%s: raw %s, normalised and multiplied %s", row.name, raw, parts[number, :SCORES].tolist())
            weighed = (f"WeighedHost [host: {host}, weight: {total}]" for host, total, _ in self._trace.scores)
            LOG.debug("Weighed [%s]", ", ".join(weighed))

    def _consume(self, server: str, index: int) -> None:
        state = self._states[index]
        LOG.debug(
            "Selected host: (%s, %s) ram: %dMB disk: %dMB io_ops: %d instances: %d",
            state.host, state.node, state.free_ram_mb, state.free_disk_mb, state.num_io_ops, state.num_instances,
        )  # fmt: skip
        self._winners[server] = index
        self._trace.winners[server] = state.host
        self._states[index] = consume(state, self._request.spec.flavor, self._guest)
        self._request = self._request.placed(server, state.host)
        if self._ranking is not None:
            self._ranking.update(self._request, index, self._states[index])

    def selections(self, servers: Sequence[str], *, alternates: bool) -> Selections:
        """The winner of each server and, in the same cell, up to `max_attempts` - 1 hosts that won nothing."""
        wanted = self._request.settings.max_attempts - 1 if alternates else 0
        order = self._last_order(servers[-1]) if wanted > 0 else []
        by_cell: dict[str, tuple[Selection, ...]] = {}
        found = []
        for server in servers:
            winner = self._selection(self._winners[server], self._asked[server])
            cell = winner.cell_uuid
            if cell not in by_cell:
                by_cell[cell] = tuple(self._selection(index) for index in islice(self._spare(order, cell), wanted))
            found.append((winner, *by_cell[cell]))
        self._trace.alternates = tuple(dict.fromkeys(row.host for rows in found for row in rows[1:]))
        return tuple(found)

    def _last_order(self, last: str) -> list[int]:
        """The hosts, best first; of several servers, judged again after the last."""
        if len(self._winners) == 1:
            return self._order
        self._trace.next_round(last)
        return self._ranked(self._request, self._filtered(self._request.placing(last)))

    def _spare(self, order: Sequence[int], cell: str) -> Iterator[int]:
        """Hosts of the cell that won nothing and can be claimed, in this order."""
        winners = frozenset(self._winners.values())
        for index in order:
            row = self._states[index].row
            if index not in winners and row.cell_uuid == cell and row.uuid in self._candidates:
                yield index

    def _selection(self, index: int, asked: str = "") -> Selection:
        """The host as it is answered. asked: what was claimed there; without, what an alternate would claim."""
        state = self._states[index]
        zones = state.metadata("availability_zone")
        return Selection(
            host=state.host,
            node=state.node,
            provider_uuid=state.uuid,
            cell_uuid=state.cell_uuid,
            allocation_request=asked or self._candidates.request(state.uuid, offer_of(state, self._guest)),
            allocation_request_version=VERSION,
            availability_zone=min(zones) if zones else self._request.settings.default_availability_zone,
            limits=limits_for(state, self._guest),
        )
