"""A request whose database is away, or has no connection to spare, is not wrong: it is to come again."""

from __future__ import annotations

import logging
from typing import Final

from kilonova.core.errors import Unavailable
from kilonova.sql.engine import unreachable
from kilonova.sql.reach import reason

LOG = logging.getLogger(__name__)

AGAIN_AFTER: Final = "3"
"""Seconds that a client is told to wait before it comes again."""
RETRY_AFTER: Final = (("Retry-After", AGAIN_AFTER),)


class DatabaseBusy(Unavailable):
    """What exactly is wrong stands in the log: a stranger is not told where databases are."""

    code = "database_busy"
    message = "The database does not answer, or has no connection to spare for this request; try again in a moment."


def database_busy(error: Exception, what: str) -> DatabaseBusy | None:
    """What to answer instead of an error that says so of the database, after a line in the log; None for any other."""
    if not unreachable(error):
        return None
    LOG.error("%s failed: the database does not answer or has no connection to spare: %s", what, reason(error))
    return DatabaseBusy()
