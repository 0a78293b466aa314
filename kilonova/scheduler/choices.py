"""Hosts that decisions of this process chose and that no answer of Placement shows yet.

Decisions made at the same moment see the same free room; without this they would all take the same best host. So each
notes its choice before it claims, the others weigh what is left, and a choice that comes to nothing is taken back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kilonova.core.request_spec import FlavorSpec

Change = tuple[str, FlavorSpec, int]
"""A provider, and that a server of this flavor was chosen for it (1) or is not to come after all (-1)."""


class Choices:
    """The choices of all decisions that are being made. Safe from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: set[View] = set()

    @contextmanager
    def decision(self) -> Iterator[View]:
        """The view of one decision, from before it asks Placement to its end. When it fails, all it chose is undone."""
        view = View(self)
        with self.lock:
            for other in self.running:
                view.news += [(provider, flavor, 1) for provider, flavor in other.unclaimed]
            self.running.add(view)
        try:
            yield view
        except BaseException:
            view.forget()
            raise
        finally:
            with self.lock:
                self.running.discard(view)


class View:
    """One decision among others. What it does between `turn` and the next is seen by them at once."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.news: list[Change] = []
        self.unclaimed: list[tuple[str, FlavorSpec]] = []
        self._claimed: list[tuple[str, FlavorSpec]] = []

    @contextmanager
    def turn(self) -> Iterator[list[Change]]:
        """Alone among the decisions until the end of the block: what the others changed since the last turn."""
        with self._choices.lock:
            news, self.news = self.news, []
            yield news

    def choose(self, provider: str, flavor: FlavorSpec) -> None:
        """Say, within a turn, what is about to be claimed."""
        self.unclaimed.append((provider, flavor))
        self._tell([(provider, flavor, 1)])

    def claimed(self) -> None:
        """All that was chosen is ours: a decision that asks Placement from now on sees it there."""
        with self._choices.lock:
            self._claimed += self.unclaimed
            self.unclaimed = []

    def take_back(self) -> None:
        """What was chosen and is not claimed is left to others."""
        with self._choices.lock:
            self._tell([(provider, flavor, -1) for provider, flavor in self.unclaimed])
            self.unclaimed = []

    def forget(self) -> None:
        """Everything chosen, claimed or not, is left to others."""
        with self._choices.lock:
            self._tell([(provider, flavor, -1) for provider, flavor in (*self.unclaimed, *self._claimed)])
            self.unclaimed, self._claimed = [], []

    def _tell(self, changes: list[Change]) -> None:
        for other in self._choices.running:
            if other is not self:
                other.news += changes
