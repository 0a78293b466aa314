"""The servers of one request, placed one after the other: filter, weigh, claim, then the next sees what is left.

It keeps the working state of one request and nothing beyond it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice

from kilonova.core.request_spec import Selection
from kilonova.scheduler.candidates import VERSION, Candidates
from kilonova.scheduler.claim import PlacementClient, claim_first
from kilonova.scheduler.host_state import HostState, consume, names
from kilonova.scheduler.plugins import Filter, Weigher
from kilonova.scheduler.request import Request
from kilonova.scheduler.stages import narrow, pick_order, run_filters
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
        client: PlacementClient,
        request: Request,
        states: list[HostState],
        candidates: Candidates,
        trace: Trace,
    ) -> None:
        self._filters = filters
        self._weighers = weighers
        self._client = client
        self._request = request
        self._states = states
        self._candidates = candidates
        self._trace = trace
        self._ranking: Ranking | None = None
        self._winners: dict[str, int] = {}
        self._refused: set[int] = set()
        self._skip_filters = False
        self._order: list[int] = list(range(len(states)))

    def place(self, server: str) -> bool:
        """Filter, weigh and claim for one server; False when it finds no host."""
        trace, request = self._trace, self._request.placing(server)
        with trace.timed("filters"):
            alive = self._filtered(request)
        if not alive:
            return False
        with trace.timed("weighers"):
            self._order = self._ranked(request, alive)
        with trace.timed("claim"):
            index = self._claimed(request, server)
        if index is None:
            return False
        self._consume(server, index)
        return True

    def _claimed(self, request: Request, server: str) -> int | None:
        """The claimed host. One that was refused to an equal server before is tried again only after all others."""
        order = sorted(self._order, key=self._refused.__contains__) if self._refused else self._order
        tried = len(self._trace.attempts)
        index = claim_first(
            self._client, request.spec, server, order, self._states, self._candidates, self._trace.attempts
        )
        self._refused.update(attempt.index for attempt in self._trace.attempts[tried:] if not attempt.taken)
        return index

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
                LOG.debug("%s: multiplied and normalised %s", row.name, parts[number, :SCORES].tolist())
            weighed = [f"WeighedHost [host: {host}, weight: {total}]" for host, total, _ in self._trace.scores]
            LOG.debug("Weighed %s", weighed)

    def _consume(self, server: str, index: int) -> None:
        state = self._states[index]
        LOG.debug(
            "Selected host: (%s, %s) ram: %dMB disk: %dMB io_ops: %d instances: %d",
            state.host, state.node, state.free_ram_mb, state.free_disk_mb, state.num_io_ops, state.num_instances,
        )  # fmt: skip
        self._winners[server] = index
        self._trace.winners[server] = state.host
        self._states[index] = consume(state, self._request.spec.flavor)
        self._request = self._request.placed(server, state.host)
        if self._ranking is not None:
            self._ranking.update(self._request, index, self._states[index])

    def selections(self, servers: Sequence[str], *, alternates: bool) -> Selections:
        """The winner of each server and, in the same cell, up to `max_attempts` - 1 hosts that won nothing."""
        wanted = self._request.settings.max_attempts - 1 if alternates else 0
        spare = self._spare(servers[-1]) if wanted > 0 else []
        by_cell: dict[str, tuple[Selection, ...]] = {}
        found = []
        for server in servers:
            winner = self._selection(self._winners[server])
            cell = winner.cell_uuid
            if cell not in by_cell:
                near = (index for index in spare if self._states[index].cell_uuid == cell)
                by_cell[cell] = tuple(self._selection(index) for index in islice(near, wanted))
            found.append((winner, *by_cell[cell]))
        self._trace.alternates = tuple(dict.fromkeys(row.host for rows in found for row in rows[1:]))
        return tuple(found)

    def _spare(self, last: str) -> list[int]:
        """Hosts that won nothing and can be claimed, best first; of several servers, judged again after the last."""
        order = self._order
        if len(self._winners) > 1:
            order = self._ranked(self._request, self._filtered(self._request.placing(last)))
        winners = frozenset(self._winners.values())
        return [index for index in order if index not in winners and self._states[index].uuid in self._candidates]

    def _selection(self, index: int) -> Selection:
        state = self._states[index]
        zones = state.metadata("availability_zone")
        return Selection(
            host=state.host,
            node=state.node,
            provider_uuid=state.uuid,
            cell_uuid=state.cell_uuid,
            allocation_request=self._candidates.request(state.uuid),
            allocation_request_version=VERSION,
            availability_zone=min(zones) if zones else self._request.settings.default_availability_zone,
        )
