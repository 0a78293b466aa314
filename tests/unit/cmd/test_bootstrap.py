"""`kilonova bootstrap` against the embedded identity service over a socket; tests/deploy has it on a real Keystone."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kilonova.cmd import os_cloud
from kilonova.cmd.main import main
from kilonova.core import ids
from kilonova.embedded.identity.app import make_app, make_identity
from kilonova.embedded.identity.bootstrap import bootstrap
from kilonova.embedded.identity.tables import ENDPOINTS, REGIONS, SERVICES
from kilonova.http.server import HttpServer
from kilonova.sql.engine import Database

PASSWORD = "admin-pw"
COMPUTE, PLACEMENT = "http://127.0.0.1:8774/v2.1", "http://127.0.0.1:8778"
URLS = ("--compute-url", COMPUTE, "--placement-url", PLACEMENT)
Bootstrap = Callable[..., tuple[list[str], str]]


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def nowhere() -> str:
    return f"http://127.0.0.1:{closed_port()}"


class Writable:
    """The embedded identity service, and the writes to the catalogue that Keystone has and it has not."""

    KINDS = {"services": SERVICES, "endpoints": ENDPOINTS, "regions": REGIONS}

    def __init__(self, app: Any, database: Database) -> None:
        self.app, self.database = app, database

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        nouns, *key = [*environ["PATH_INFO"].split("/"), ""][2:-1] or [""]
        if environ["REQUEST_METHOD"] not in ("POST", "PATCH") or nouns not in self.KINDS:
            return self.app(environ, start_response)
        rows, noun = self.KINDS[nouns], nouns[:-1]
        body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))[noun]
        with self.database.write() as connection:
            if key:
                rows.update(connection, key[0], body)
            else:
                body.setdefault("id", ids.new_hex())
                rows.insert(connection, body)
        start_response("200 OK" if key else "201 Created", [("Content-Type", "application/json")])
        return [json.dumps({noun: body}).encode()]


@pytest.fixture
def identity(tmp_path: Path, nowhere: str) -> Iterator[str]:
    """The URL of an identity service without users, services and endpoints of ours."""
    database = Database(f"sqlite:///{tmp_path}/identity.db")
    people = make_identity(database)
    bootstrap(people, admin_password=PASSWORD, service_password="x", base_url=nowhere)
    with database.write() as connection:
        for name in ("nova", "placement"):
            service = SERVICES.find(connection, {"name": name})[0]["id"]
            ENDPOINTS.delete(connection, {"service_id": service})
            SERVICES.delete(connection, service)
    app = Writable(make_app(people, nowhere), database)
    server = HttpServer(app, "127.0.0.1", int(nowhere.rpartition(":")[2]), threads=2)
    server.start()
    remove_ours(nowhere, PASSWORD)
    yield nowhere
    server.stop()
    database.dispose()


def variables(url: str, password: str = PASSWORD, user: str = "admin", project: str = "admin") -> dict[str, str]:
    return {
        "OS_AUTH_URL": url, "OS_USERNAME": user, "OS_PASSWORD": password, "OS_PROJECT_NAME": project,
        "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default",
    }  # fmt: skip


@dataclass
class Directory:
    """What an identity service has."""

    session: Any
    url: str

    @classmethod
    def of(cls, url: str, password: str = PASSWORD) -> Directory:
        return cls(os_cloud.login(None, variables(url, password)).session, url.rstrip("/").removesuffix("/v3") + "/v3")

    def rows(self, nouns: str, **where: str) -> list[dict[str, Any]]:
        found = self.session.get(f"{self.url}/{nouns}").json()[nouns]
        return [row for row in found if all(row[name] == value for name, value in where.items())]

    def endpoints(self, kind: str) -> dict[str, str]:
        service = self.rows("services", type=kind)[0]["id"]
        return {row["interface"]: row["url"] for row in self.rows("endpoints", service_id=service)}


def remove_ours(url: str, password: str) -> None:
    there = Directory.of(url, password)
    for nouns, name in (("users", "nova"), ("users", "placement"), ("services", "nova"), ("services", "placement"),
                        ("projects", "service")):  # fmt: skip
        for row in there.rows(nouns, name=name):
            there.session.delete(f"{there.url}/{nouns}/{row['id']}")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bootstrap:
    """Runs the command with variables; answers its lines and what it said beside them."""
    for name in [name for name in os.environ if name.startswith("OS_") or "proxy" in name.lower()]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("KILONOVA_SERVICE_PASSWORD", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def command(*words: str, code: int = 0, **environ: str) -> tuple[list[str], str]:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        ended = main(["bootstrap", *words])
        out, err = capsys.readouterr()
        assert ended == code, out + err
        return out.splitlines(), err

    return command


def test_it_makes_what_is_missing_and_changes_only_what_was_asked_for(identity: str, run: Bootstrap) -> None:
    url, password = identity, PASSWORD
    who = variables(url, password)
    lines, _ = run(*URLS, KILONOVA_SERVICE_PASSWORD="first", **who)
    assert {"made     user      nova", "made     endpoint  placement internal " + PLACEMENT} <= set(lines)
    there = Directory.of(url, password)
    assert there.endpoints("compute") == dict.fromkeys(("public", "internal", "admin"), COMPUTE)
    again, _ = run(*URLS)
    assert again
    assert all(line.startswith("there ") for line in again)
    changed, _ = run(*URLS, "--compute-url", "internal=http://10.0.0.1/v2.1", "--service-password", "second")
    assert [line for line in changed if not line.startswith("there ")] == [
        "changed  user      nova",
        "changed  user      placement",
        "changed  endpoint  compute internal http://10.0.0.1/v2.1",
    ]
    nova = os_cloud.login(None, variables(url, "second", "nova", "service")).session
    assert {role["name"] for role in roles(nova)} >= {"service", "admin"}
    place = os_cloud.login(None, variables(url, "second", "placement", "service")).session
    assert [role["name"] for role in roles(place)] == ["service"]
    assert len(there.rows("services", type="compute")) == 1
    assert len(there.rows("users", name="nova")) == 1


def roles(session: Any) -> list[dict[str, Any]]:
    access = session.auth.get_access(session)
    return [{"name": name} for name in access.role_names]


def test_without_a_password_for_a_new_user_nothing_is_made(identity: str, run: Bootstrap) -> None:
    _, err = run(*URLS, code=1, **variables(identity))
    assert "nova is to be made and needs a password" in err
    assert Directory.of(identity).rows("services", name="nova") == []


def test_a_cloud_is_found_where_the_openstack_command_finds_it(identity: str, run: Bootstrap, tmp_path: Path) -> None:
    auth = {"auth_url": identity, "username": "admin", "project_name": "admin",
            "user_domain_id": "default", "project_domain_id": "default"}  # fmt: skip
    cloud = {"auth": auth, "region_name": "North", "identity_api_version": "3"}
    folder = tmp_path / ".config/openstack"
    folder.mkdir(parents=True)
    (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"mine": cloud}}))
    (folder / "secure.yaml").write_text(yaml.safe_dump({"clouds": {"mine": {"auth": {"password": PASSWORD}}}}))
    lines, _ = run("--os-cloud", "mine", *URLS, "--service-password", "x")
    assert "made     region    North" in lines
    assert run(*URLS, OS_CLOUD="mine")[0] == [f"there    {line[9:]}" for line in lines]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no cloud mine in .*clouds.yaml or .*openstack"),
        ("clouds: {other: {}}", "no cloud mine in clouds.yaml"),
        ("[", "clouds.yaml cannot be used: it is no YAML"),
        ("clouds: [mine]", "no `clouds` with settings by name"),
        ("clouds: {mine: {profile: vendor}}", "vendor's profile"),
        ("clouds: {mine: {auth: {username: x}}}", "cannot be used: .*auth_url"),
        ("clouds: {mine: {auth_type: magic, auth: {auth_url: 'http://h'}}}", "cannot be used: .*magic"),
    ],
)
def test_a_cloud_that_cannot_be_used_is_one_sentence(
    run: Bootstrap, tmp_path: Path, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / "clouds.yaml").write_text(text)
    _, err = run("--os-cloud", "mine", code=1)
    assert err.count("\n") == 1
    assert re.search(words, err), err


def test_nobody_is_asked_to_say_who(run: Bootstrap) -> None:
    assert "--os-cloud NAME" in run(code=1)[1]


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ({"OS_PASSWORD": "wrong"}, "does not accept these credentials"),
        ({"OS_USERNAME": "demo", "OS_PROJECT_NAME": "demo", "OS_PASSWORD": PASSWORD}, "needs the role admin"),
    ],
)
def test_credentials_that_do_not_do_are_one_sentence(
    identity: str, run: Bootstrap, who: dict[str, str], words: str
) -> None:
    _, err = run(*URLS, "--service-password", "x", code=1, **(variables(identity) | who))
    assert words in err
    assert err.count("\n") == 1


def test_a_service_that_does_not_answer_is_waited_for(run: Bootstrap, nowhere: str) -> None:
    _, err = run("--wait", "0.2", code=1, **variables(nowhere))
    waiting, failed = err.splitlines()
    assert waiting == f"Waiting: The identity service at {nowhere} does not answer: Connection refused."
    assert failed.startswith("kilonova: The identity service")


def test_a_domain_that_is_not_there_is_named(identity: str, run: Bootstrap) -> None:
    _, err = run("--domain", "nowhere", "--service-password", "x", code=1, **variables(identity))
    assert "the domain nowhere" in err


@pytest.mark.parametrize("url", ["controller:8774", "ftp://h/", "http://", "inside=http://h/", "internal="])
def test_an_address_is_one_of_http(run: Bootstrap, url: str) -> None:
    with pytest.raises(SystemExit) as left:
        run("--compute-url", url)
    assert left.value.code == 2
