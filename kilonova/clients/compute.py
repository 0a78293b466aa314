"""Compute, as other services call it: external events of the network and volume services."""

from __future__ import annotations

from typing import Protocol

from kilonova.clients.rest import Doc, RestClient, failure

VERSION = "2.93"  # the first that knows every event name


class Compute(Protocol):
    """What the network and volume services tell compute."""

    def external_events(self, events: list[Doc]) -> list[Doc]: ...


class HttpCompute:
    """The compute service over its REST API; the endpoint ends in `/v2.1`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def external_events(self, events: list[Doc]) -> list[Doc]:
        """Deliver `{name, server_uuid, tag, status}` each; every event with the code it got.

        An empty list when none of the servers is known (404). RemoteUnavailable, RemoteInvalid, RemoteForbidden.
        """
        response = self._rest.request("POST", "/os-server-external-events", json={"events": events}, version=VERSION)
        if response.status == 404:
            return []
        if response.status not in (200, 207):
            raise failure("compute", response)
        return list(response.json()["events"])
