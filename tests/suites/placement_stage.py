"""Where the fixtures of OpenStack's Placement set the scene for its own tests: our service, through its API.

The fixtures' source is run as it is installed. What it imports of that service is exchanged for what stands here, so
that a setting goes into our configuration file, and a provider or an allocation is made by a request.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

from kilonova.conf.load import load
from kilonova.core import ids, json
from kilonova.http.transport import WsgiTransport
from kilonova.placement.app import OPS
from kilonova.sql.engine import Database
from kilonova.wiring.parts import WsgiApp
from kilonova.wiring.placement import placement_app

_IMPORTED_AS_IT_IS: Final = ("gabbi", "os", "os_resource_classes", "os_traits")
_UNTYPED: Final = "1.37"  # from 1.38 on a consumer has a type, and theirs have none


@dataclass
class Stage:
    """The service with the settings that were made before its first request. folder: for its configuration."""

    room: Database
    folder: Path
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    app: WsgiApp | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if self.app is None:
            file = self.folder / "placement.conf"
            file.write_text("".join(map(_section, self.settings, self.settings.values())))
            self.app = placement_app(load([file], application="placement"), self.room)
        return self.app(environ, start_response)

    def configure(self, group: str, **values: Any) -> None:
        """Settings of a group, as the fixtures name and give them."""
        known = self.settings.setdefault(group, {})
        known.update({name: ",".join(one) if isinstance(one, list) else str(one) for name, one in values.items()})

    def rule(self, rules: Mapping[str, str]) -> None:
        """A policy file with these rules."""
        file = self.folder / "policy.yaml"
        file.write_bytes(json.dumps(dict(rules)))
        self.configure("oslo_policy", policy_file=file)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What an administrator's request answers, which has to go well."""
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": f"placement {_UNTYPED}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body)
        status, _, answer = WsgiTransport(self).send(method, f"http://localhost{path}", headers, data)
        assert status in (200, 201, 204), f"{method} {path} {status}: {answer.decode()}"
        return json.loads(answer) if answer else None


def _section(group: str, values: Mapping[str, str]) -> str:
    return f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


class _Sentinels:
    """A UUID for each name that somebody asks for."""

    def __getattr__(self, name: str) -> str:
        made = self.__dict__[name] = ids.new_uuid()
        return made


@dataclass(frozen=True)
class _Provider:
    stage: Stage
    uuid: str

    def generation(self) -> int:
        shown: int = self.stage.ask("GET", f"/resource_providers/{self.uuid}")["generation"]
        return shown

    def put(self, what: str, value: Any) -> None:
        body = {what: value, "resource_provider_generation": self.generation()}
        self.stage.ask("PUT", f"/resource_providers/{self.uuid}/{what}", body)

    def set_aggregates(self, aggregates: list[str]) -> None:
        self.put("aggregates", aggregates)


@dataclass(frozen=True)
class _Named:
    """A user, a project or a resource class. Only the last has to be made before it is used."""

    context: Any
    external_id: str = ""
    name: str = ""

    def create(self) -> None:
        if self.name:
            self.context.ask("PUT", f"/resource_classes/{self.name}")


class _Making:
    """The functions by which the fixtures make what is in the database."""

    def __init__(self, stage: Stage, uuids: _Sentinels) -> None:
        self._stage, self._uuids = stage, uuids

    def create_provider(
        self, _: Any, name: str, *aggregates: str, uuid: str | None = None, parent: str | None = None
    ) -> _Provider:
        made = _Provider(self._stage, uuid or getattr(self._uuids, name))
        nested = {"parent_provider_uuid": parent} if parent else {}
        self._stage.ask("POST", "/resource_providers", {"name": name, "uuid": made.uuid, **nested})
        if aggregates:
            made.set_aggregates(list(aggregates))
        return made

    def add_inventory(self, provider: _Provider, name: str, total: int, **more: Any) -> None:
        if name.startswith("CUSTOM_"):
            self._stage.ask("PUT", f"/resource_classes/{name}")
        record = {"resource_class": name, "total": total, "max_unit": total, **more}
        self._stage.ask("POST", f"/resource_providers/{provider.uuid}/inventories", record)

    def set_traits(self, provider: _Provider, *names: str) -> None:
        for name in names:
            if name.startswith("CUSTOM_"):
                self._stage.ask("PUT", f"/traits/{name}")
        provider.put("traits", list(names))

    def create_user_and_project(self, _: Any, prefix: str) -> tuple[_Named, _Named]:
        return _Named(_, f"{prefix}-user"), _Named(_, f"{prefix}-project")

    def ensure_consumer(self, _: Any, user: _Named, project: _Named) -> Any:
        return SimpleNamespace(uuid=ids.new_uuid(), user=user.external_id, project=project.external_id)

    def set_allocation(self, _: Any, provider: _Provider, consumer: Any, amounts: dict[str, int]) -> None:
        self._stage.ask("PUT", f"/allocations/{consumer.uuid}", {
            "allocations": {provider.uuid: {"resources": amounts}}, "consumer_generation": None,
            "user_id": consumer.user, "project_id": consumer.project,
        })  # fmt: skip


def _in_the_place_of(stage: Stage) -> dict[str, Any]:
    uuids = _Sentinels()
    rules = [SimpleNamespace(name=name) for name in sorted({op.policy for op in OPS if op.policy})]
    return {
        "oslo_config.fixture": SimpleNamespace(Config=lambda _: mock.MagicMock(config=stage.configure)),
        "oslo_utils.fixture.uuidsentinel": uuids,
        "oslo_utils.uuidutils": SimpleNamespace(generate_uuid=ids.new_uuid),
        "placement.context": SimpleNamespace(RequestContext=lambda: stage),
        "placement.objects.project": SimpleNamespace(Project=_Named),
        "placement.objects.resource_class": SimpleNamespace(ResourceClass=_Named),
        "placement.objects.user": SimpleNamespace(User=_Named),
        "placement.policies": SimpleNamespace(list_rules=lambda: rules),
        "placement.tests.functional.db.test_base": _Making(stage, uuids),
        "placement.tests.unit.policy_fixture": SimpleNamespace(
            PolicyFixture=lambda _: mock.MagicMock(set_rules=stage.rule)
        ),
    }


@contextmanager
def fixtures(source: Path, stage: Stage) -> Iterator[Any]:
    """The module of the fixtures, for this stage. The environment variables that they set are gone afterwards."""
    ours = _in_the_place_of(stage)

    def find(
        name: str, globals: Any = None, locals: Any = None, wanted: tuple[str, ...] | None = (), level: int = 0
    ) -> Any:
        if name.partition(".")[0] in _IMPORTED_AS_IT_IS:
            return builtins.__import__(name, globals, locals, wanted or (), level)
        return SimpleNamespace(**{one: ours.get(f"{name}.{one}", mock.MagicMock()) for one in wanted or ()})

    names: dict[str, Any] = {"__name__": source.stem, "__builtins__": {**vars(builtins), "__import__": find}}
    with mock.patch.dict(os.environ):
        exec(compile(source.read_text(), source, "exec"), names)
        yield SimpleNamespace(**names)
