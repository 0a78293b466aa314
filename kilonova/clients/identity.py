"""Identity (Keystone v3): whether a project exists, what a token says."""

from __future__ import annotations

import logging
from typing import Protocol

from kilonova.clients.rest import Doc, RestClient, failure, query, segment

LOG = logging.getLogger(__name__)


class Identity(Protocol):
    """What compute needs of the identity service."""

    def project_exists(self, project_id: str) -> bool: ...

    def validate(self, token: str) -> Doc | None: ...

    def list_projects(self, name: str | None = None) -> list[Doc]: ...


class HttpIdentity:
    """The identity service over its REST API; the endpoint may or may not end in `/v3`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def project_exists(self, project_id: str) -> bool:
        """False only when identity says that there is none; an answer that forbids to look counts as yes."""
        response = self._rest.request("GET", self._path(f"/projects/{segment(project_id)}"))
        if response.status in (200, 404):
            return response.status == 200
        if response.status == 403:
            LOG.info("Not allowed to look for project %s; it is taken to exist", project_id)
            return True
        raise failure("identity", response)

    def validate(self, token: str) -> Doc | None:
        """The token's body; None when it is not valid."""
        response = self._rest.request("GET", self._path("/auth/tokens"), headers={"X-Subject-Token": token})
        if response.status == 404:
            return None
        if response.status != 200:
            raise failure("identity", response)
        return dict(response.json()["token"])

    def list_projects(self, name: str | None = None) -> list[Doc]:
        """Projects, by name where given."""
        return list(self._rest.call("GET", self._path("/projects" + query({"name": name})))["projects"])

    def _path(self, path: str) -> str:
        return path if self._rest.url("").rstrip("/").endswith("/v3") else "/v3" + path
