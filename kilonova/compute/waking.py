"""Telling a conductor of work that the journal has already."""

from __future__ import annotations

import logging

from kilonova.bus.calls import Wake, wake_workflow
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Unavailable

LOG = logging.getLogger(__name__)


def wake(world: World, database: str, workflow: str, ctx: Context) -> None:
    """Have a workflow run at once. To be called after the transaction that journaled it.

    When the broker or every conductor is away, the request is accepted all the same: the work is stored, and the
    conductors look for work nobody told them of every two seconds.
    """
    try:
        world.bus.cast(wake_workflow, Wake(database, workflow), ctx=ctx)
    except Unavailable as error:
        LOG.warning("Nobody was told of workflow %s, which a conductor will find by itself: %s", workflow, error.text)
