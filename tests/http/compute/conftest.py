"""One whole cloud in this process for all tests of the Compute API; what a test makes it takes away, or names its own.

Accounts: `admin` and `demo` of a new deployment, `alt` (another project's member) and `reader` (of demo's project).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kilonova.conf.all_in_one import AllInOne, Secrets
from kilonova.http.transport import WsgiTransport
from kilonova.wiring import Cloud, all_in_one
from tests.http.compute.cloud import PASSWORD, Client, boot, login, remove


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Five simulated hypervisors (sim-0001 …; a test takes the fifth away), no socket; networks inside 127.0.0.0/8."""
    secrets = Secrets(PASSWORD, PASSWORD, PASSWORD, "service-secret")
    cloud = all_in_one(AllInOne(
        host="127.0.0.1", port=8774, state_dir=tmp_path_factory.mktemp("cloud"), hosts=5,
        private_cidr="127.100.0.0/16", public_cidr="127.200.0.0/24", secrets=secrets,
    ))  # fmt: skip
    cloud.start(listen=False)
    yield cloud
    cloud.stop()


@pytest.fixture(scope="session")
def transport(cloud: Cloud) -> WsgiTransport:
    return WsgiTransport(cloud.app)


@pytest.fixture(scope="session")
def admin(transport: WsgiTransport) -> Client:
    """An administrator, in the project admin."""
    return login(transport, "admin", "admin")


@pytest.fixture(scope="session")
def demo(transport: WsgiTransport) -> Client:
    """A member of the project demo."""
    return login(transport, "demo", "demo")


@pytest.fixture(scope="session")
def alt(transport: WsgiTransport) -> Client:
    """A member of another project."""
    return login(transport, "alt_demo", "alt_demo")


@pytest.fixture(scope="session")
def reader(transport: WsgiTransport, admin: Client, demo: Client) -> Client:
    """Somebody who may look at the project demo."""
    user = {"user": {"name": "reader", "domain_id": "default", "password": PASSWORD}}
    made = admin.ok("POST", "/v3/users", user, service="/identity")["user"]["id"]
    role = admin.get("/v3/roles?name=reader", service="/identity")["roles"][0]["id"]
    admin.ok("PUT", f"/v3/projects/{demo.project}/users/{made}/roles/{role}", service="/identity")
    return login(transport, "reader", "demo")


@pytest.fixture
def server(demo: Client) -> Iterator[dict[str, object]]:
    """A server of demo's that is ACTIVE, as `GET /servers/{id}` shows it at 2.37; deleted at the end."""
    made = boot(demo)
    assert made["status"] == "ACTIVE", made.get("fault")
    yield made
    if demo.status("GET", f"/servers/{made['id']}") != 404:
        remove(demo, made["id"])
