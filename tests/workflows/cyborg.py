"""An accelerator service in memory: device profiles, and requests whose binding takes until `resolve` is called.

It keeps to Cyborg's API v2: ARQs are made one for each device of a profile's groups; all of a server are bound by one
PATCH, which is answered before they are; a server that has some gets no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from kilonova.core import ids, json

Doc = dict[str, Any]
_BOUND_FIELDS = {"/hostname", "/device_rp_uuid", "/instance_uuid", "/project_id"}


@dataclass
class Cyborg:
    """The service as a WSGI callable. refuses: device providers whose binding fails."""

    profiles: list[Doc] = field(default_factory=list)
    arqs: dict[str, Doc] = field(default_factory=dict)
    refuses: set[str] = field(default_factory=set)
    projects: set[str] = field(default_factory=set)

    def __call__(self, environ: Doc, start_response: Callable[..., Any]) -> Iterable[bytes]:
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        asked = {key: values[0] for key, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
        version = environ.get("HTTP_OPENSTACK_API_VERSION", "accelerator 2.0")
        status, document = self._answer(
            f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}", asked, json.loads(raw) if raw else None, version
        )
        content = b"" if document is None else json.dumps(document)
        head = [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
        start_response(f"{status} {HTTPStatus(status).phrase}", head)
        return [content]

    def _answer(self, line: str, asked: dict[str, str], body: Any, version: str) -> tuple[int, Doc | None]:
        if line == "GET /v2/device_profiles":
            found = [row for row in self.profiles if asked.get("name") in (None, row["name"])]
            return 200, {"device_profiles": found}
        if line == "POST /v2/accelerator_requests":
            return self._create(body["device_profile_name"])
        if line == "PATCH /v2/accelerator_requests":
            return self._bind(body, version)
        if line == "GET /v2/accelerator_requests":
            return 200, {"arqs": [arq for arq in self.arqs.values() if _of(arq, asked.get("instance"))]}
        if line == "DELETE /v2/accelerator_requests" and "instance" in asked:
            self.arqs = {uuid: arq for uuid, arq in self.arqs.items() if not _of(arq, asked["instance"])}
            return 204, None
        if line == "DELETE /v2/accelerator_requests":
            return self._delete(asked["arqs"])
        return _fault(404, line)

    def _create(self, profile: str) -> tuple[int, Doc]:
        groups = [group for row in self.profiles if row["name"] == profile for group in row["groups"]]
        if not groups:
            return _fault(404, "no such profile")
        made = [
            {"uuid": ids.new_uuid(), "state": "Initial", "device_profile_name": profile,
             "device_profile_group_id": number, "hostname": None, "device_rp_uuid": None, "instance_uuid": None,
             "attach_handle_type": None, "attach_handle_info": None}
            for number, group in enumerate(groups)
            for key, amount in group.items() if key.startswith("resources:") for _ in range(int(amount))
        ]  # fmt: skip
        self.arqs |= {str(arq["uuid"]): arq for arq in made}
        return 201, {"arqs": made}

    def _bind(self, body: Doc, version: str) -> tuple[int, Doc | None]:
        for uuid, patch in body.items():
            values = {entry["path"]: entry["value"] for entry in patch if entry["op"] == "add"}
            if version != "accelerator 2.1" or set(values) != _BOUND_FIELDS:
                return _fault(400, f"fields {sorted(values)} at {version}")
            if uuid not in self.arqs:
                return _fault(404, "no such ARQ")
            if any(_of(arq, values["/instance_uuid"]) for other, arq in self.arqs.items() if other not in body):
                return _fault(400, "the server has accelerator requests already")
            if self.arqs[uuid]["state"] != "Initial":
                return _fault(400, "bound already")
        for uuid, patch in body.items():
            values = {entry["path"][1:]: entry["value"] for entry in patch}
            self.projects.add(values.pop("project_id"))
            self.arqs[uuid] |= values | {"state": "BindStarted"}
        return 202, None

    def _delete(self, uuid: str) -> tuple[int, Doc | None]:
        if uuid not in self.arqs:
            return _fault(404, "no such ARQ")
        if self.arqs[uuid]["instance_uuid"]:
            return _fault(409, "a server's ARQs are deleted by their server, which frees the devices")
        del self.arqs[uuid]
        return 204, None

    @property
    def binding(self) -> list[Doc]:
        """What is not decided yet."""
        return [arq for arq in self.arqs.values() if arq["state"] == "BindStarted"]

    def resolve(self) -> list[Doc]:
        """Bind what is to be bound, or fail to; the events that tell of it."""
        told = []
        for arq in self.binding:
            failed = arq["device_rp_uuid"] in self.refuses
            handle = {} if failed else {"attach_handle_type": "PCI", "attach_handle_info": {"bus": "3b"}}
            arq |= {"state": "BindFailed" if failed else "Bound"} | handle
            told.append({
                "name": "accelerator-request-bound", "server_uuid": arq["instance_uuid"], "tag": arq["uuid"],
                "status": "failed" if failed else "completed",
            })  # fmt: skip
        return told

    def used_by(self, server: str) -> set[tuple[str, str, str, int]]:
        """(server, provider, class, amount) that its ARQs stand for."""
        found: dict[tuple[str, str], int] = {}
        for arq in self.arqs.values():
            if arq["instance_uuid"] == server:
                (profile,) = (row for row in self.profiles if row["name"] == arq["device_profile_name"])
                for key in profile["groups"][arq["device_profile_group_id"]]:
                    if key.startswith("resources:"):
                        place = (arq["device_rp_uuid"], key.removeprefix("resources:"))
                        found[place] = found.get(place, 0) + 1
        return {(server, provider, kind, amount) for (provider, kind), amount in found.items()}


def _of(arq: Doc, server: str | None) -> bool:
    return server is None or arq["instance_uuid"] == server


def _fault(status: int, words: str) -> tuple[int, Doc]:
    return status, {"error_message": {"faultstring": words}}
