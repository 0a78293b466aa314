"""A plug-in that fails ends its request, not the service: the log says which one, and how it failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from kilonova.core.errors import KilonovaError
from kilonova.core.scheduling import NoValidHost

LOG = logging.getLogger(__name__)


@contextmanager
def blamed(kind: str, name: str) -> Iterator[None]:
    """What goes wrong in the block is this plug-in's fault: NoValidHost with its name. Errors of ours pass."""
    try:
        yield
    except KilonovaError:
        raise
    except Exception as error:
        LOG.exception("%s %s failed", kind, name)
        raise NoValidHost(reason=f"{kind} {name} failed ({type(error).__name__}).") from error
