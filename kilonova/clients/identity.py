"""Identity (Keystone v3): whether a project exists, what a token says."""

from __future__ import annotations

import logging
from typing import Protocol

from kilonova.clients.rest import Doc, RestClient, failure, query, segment
from kilonova.core import clock

LOG = logging.getLogger(__name__)

_PROJECT_FOR = 3600.0  # seconds


def compute_zones(project: Doc) -> frozenset[str]:
    """The zones that a project is kept to, by its attribute `compute_zones`, a comma list; none for no restriction,
    which `ALL` says too.
    """
    text = str(project.get("compute_zones") or "").strip()
    return frozenset() if text == "ALL" else frozenset(zone.strip() for zone in text.split(",") if zone.strip())


class Identity(Protocol):
    """What compute needs of the identity service."""

    def project_exists(self, project_id: str) -> bool: ...

    def project(self, project_id: str) -> Doc | None: ...

    def validate(self, token: str) -> Doc | None: ...

    def list_projects(self, name: str | None = None) -> list[Doc]: ...


class HttpIdentity:
    """The identity service over its REST API; the endpoint may or may not end in `/v3`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest
        self._projects: dict[str, tuple[float, Doc | None]] = {}

    def project_exists(self, project_id: str) -> bool:
        """False only when identity says that there is none; an answer that forbids to look counts as yes."""
        response = self._rest.request("GET", self._path(f"/projects/{segment(project_id)}"))
        if response.status in (200, 404):
            return response.status == 200
        if response.status == 403:
            LOG.info("Not allowed to look for project %s; it is taken to exist", project_id)
            return True
        raise failure("identity", response)

    def project(self, project_id: str) -> Doc | None:
        """The project, with its tags and whatever attributes its cloud gives it; None when there is none. Remembered
        for an hour.
        """
        now = clock.monotonic()
        known = self._projects.get(project_id)
        if known is None or now - known[0] >= _PROJECT_FOR:
            self._projects = {key: row for key, row in self._projects.items() if now - row[0] < _PROJECT_FOR}
            known = self._projects[project_id] = (now, self._project(project_id))
        return known[1]

    def _project(self, project_id: str) -> Doc | None:
        response = self._rest.request("GET", self._path(f"/projects/{segment(project_id)}"))
        if response.status == 404:
            return None
        if response.status != 200:
            raise failure("identity", response)
        return dict(response.json()["project"])

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
