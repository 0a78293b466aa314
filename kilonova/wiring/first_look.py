"""Placement, looked at once when a scheduler starts: what is wrong there is said before the first request fails."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from kilonova.clients.auth import CredentialsUnusable, refused
from kilonova.clients.rest import Doc, RemoteForbidden, RemoteUnavailable
from kilonova.core.errors import KilonovaError

LOG = logging.getLogger(__name__)

_NOBODY: Final = "00000000-0000-0000-0000-000000000000"


class Placement(Protocol):
    """What is asked of it."""

    def list_providers(self, *, uuid: str) -> list[Doc]: ...


def look(placement: Placement) -> None:
    """Warn when Placement does not answer: it may come later. CredentialsUnusable when it does not let us in."""
    try:
        placement.list_providers(uuid=_NOBODY)
    except RemoteForbidden as error:
        raise CredentialsUnusable(reason=error.text.rstrip(".")) from error
    except RemoteUnavailable as error:
        if refused(error):
            raise CredentialsUnusable(reason=error.text.rstrip(".")) from error
        _warn(error)
    except KilonovaError as error:
        _warn(error)


def _warn(error: KilonovaError) -> None:
    LOG.warning("No server gets a host until Placement can be asked. %s", error.text)
