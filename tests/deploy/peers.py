"""A real Keystone and a real Placement, of the versions in requirements-peers.lock, as processes of a deployment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.processes import ROOT, Process, command
from tests.http.compute.cloud import PASSWORD, Client, login

ENVIRONMENT = ROOT / ".venv-peers"
_KEYSTONE = """
[DEFAULT]
log_file = {directory}/keystone.log
[database]
connection = {database}
max_pool_size = 2
max_overflow = 4
[cache]
backend = dogpile.cache.memory
[identity]
password_hash_rounds = 4
[fernet_tokens]
key_repository = {directory}/fernet-keys
[fernet_receipts]
key_repository = {directory}/fernet-keys
[credential]
key_repository = {directory}/fernet-keys
"""
_PLACEMENT = """
[DEFAULT]
log_file = {directory}/placement.log
[placement_database]
connection = {database}
max_pool_size = 2
max_overflow = 4
[api]
auth_strategy = keystone
[keystone_authtoken]
www_authenticate_uri = {identity}
auth_type = password
auth_url = {identity}
username = placement
password = service-secret
project_name = service
user_domain_id = default
project_domain_id = default
"""
_ALONE = """
[DEFAULT]
log_file = {directory}/placement.log
[placement_database]
connection = {database}
max_pool_size = 2
max_overflow = 4
[api]
auth_strategy = noauth2
"""
_GUNICORN = """
import sys
sys.argv[1:] = []  # the application would take them for its own
bind = "127.0.0.1:{port}"
workers, threads = 2, 4
wsgi_app = "{module}:application"
"""


def program(name: str) -> str:
    """The path of one of their programs. Skips the test where they are not installed."""
    found = ENVIRONMENT / "bin" / name
    if not found.exists():
        pytest.skip("the peers are not installed: make peers")
    return str(found)


def _served(name: str, module: str, directory: Path, port: int, environment: Mapping[str, str]) -> Process:
    """A WSGI application below `/<name>`, started."""
    settings = directory / "gunicorn.py"
    settings.write_text(_GUNICORN.format(port=port, module=module))
    made = Process(name, ["--config", str(settings)], directory, command=[program("gunicorn")])
    made.start(SCRIPT_NAME=f"/{name}", **environment)
    made.says("Listening at")
    return made


def _manage(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]


def keystone(directory: Path, database: str, port: int) -> Process:
    """A Keystone with a user `admin`, below `/identity`."""
    from cryptography.fernet import Fernet

    directory.mkdir()
    keys = directory / "fernet-keys"
    keys.mkdir(mode=0o700)
    for name in ("0", "1"):
        (keys / name).write_bytes(Fernet.generate_key())
    file = directory / "keystone.conf"
    file.write_text(_KEYSTONE.format(directory=directory, database=database))
    manage = (program("keystone-manage"), "--config-file", str(file))
    url = f"http://127.0.0.1:{port}/identity/v3"
    _manage(*manage, "db_sync")
    _manage(
        *manage, "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", "RegionOne",
        "--bootstrap-public-url", url, "--bootstrap-internal-url", url, "--bootstrap-admin-url", url,
    )  # fmt: skip
    return _served("identity", "keystone.wsgi.api", directory, port, {"OS_KEYSTONE_CONFIG_FILES": str(file)})


def placement(directory: Path, database: str, port: int, identity: str) -> Process:
    """OpenStack's Placement, below `/placement`."""
    directory.mkdir()
    file = directory / "placement.conf"
    file.write_text(_PLACEMENT.format(directory=directory, database=database, identity=identity))
    _manage(program("placement-manage"), "--config-file", str(file), "db", "sync")
    return _served("placement", "placement.wsgi.api", directory, port, {"OS_PLACEMENT_CONFIG_DIR": str(directory)})


def placement_alone(directory: Path, database: str, port: int) -> Process:
    """OpenStack's Placement without an identity service: `X-Auth-Token: admin` is its administrator."""
    driver = [program("python"), "-c", "import psycopg2"]
    if database.startswith("postgresql") and subprocess.run(driver, capture_output=True).returncode:
        pytest.skip("the peers have no psycopg2: make peers")
    directory.mkdir()
    file = directory / "placement.conf"
    address = database.replace("postgresql+psycopg:", "postgresql+psycopg2:")  # the only driver that it works with
    file.write_text(_ALONE.format(directory=directory, database=address))
    _manage(program("placement-manage"), "--config-file", str(file), "db", "sync")
    return _served("placement", "placement.wsgi.api", directory, port, {"OS_PLACEMENT_CONFIG_DIR": str(directory)})


def fill(identity: str, transport: Any, urls: Mapping[str, str]) -> None:
    """`kilonova bootstrap`, twice, and what an operator makes besides: the project and the user `demo`."""
    who = {
        "OS_AUTH_URL": identity, "OS_USERNAME": "admin", "OS_PASSWORD": PASSWORD, "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default",
        "KILONOVA_SERVICE_PASSWORD": "service-secret",
    }  # fmt: skip
    words = [word for service, url in urls.items() for word in (f"--{service}-url", url)]
    for how in ("made", "there"):
        done = command("bootstrap", *words, environment={**os.environ, **who})
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert any(line.startswith(how) and "compute public" in line for line in lines), done.stdout
    admin = login(transport, "admin", "admin", PASSWORD)
    project = _make(admin, "project", name="demo", domain_id="default")
    user = _make(admin, "user", name="demo", domain_id="default", password=PASSWORD)
    (role,) = admin.get("/roles?name=member", service="/identity/v3")["roles"]
    admin.ok("PUT", f"/projects/{project}/users/{user}/roles/{role['id']}", service="/identity/v3", status=204)


def _make(admin: Client, noun: str, **values: Any) -> str:
    return str(admin.ok("POST", f"/{noun}s", {noun: values}, service="/identity/v3", status=201)[noun]["id"])
