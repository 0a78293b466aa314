"""The service's own token and the catalog, against an identity service in this process."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.clients.auth import CredentialsUnusable, ServiceTokens, password_tokens, rest_client, service_tokens
from kilonova.clients.rest import EndpointNotFound, RemoteUnavailable
from kilonova.conf.load import load
from kilonova.core import clock
from kilonova.http.transport import WsgiTransport
from tests.unit.clients.scripted import Scripted, rest
from tests.unit.http.keystone import URL, Keystone, token


@pytest.fixture
def keystone() -> Keystone:
    return Keystone()


@pytest.fixture
def tokens(keystone: Keystone) -> ServiceTokens:
    return password_tokens(
        WsgiTransport(keystone), auth_url=URL, username="nova", password="secret", project_name="service"
    )


class Later(clock.SystemClock):
    offset = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.offset


@pytest.fixture
def later() -> Any:
    moved = Later()
    before = clock.install(moved)
    yield moved
    clock.install(before)


def test_one_login_serves_many_calls(tokens: ServiceTokens, keystone: Keystone) -> None:
    assert tokens.headers() == tokens.headers() == {"X-Auth-Token": "service-1"}
    assert keystone.logins == 1


def test_a_refused_token_is_renewed_once_for_all_who_held_it(tokens: ServiceTokens, keystone: Keystone) -> None:
    stale = tokens.headers()
    assert tokens.renew(stale) is True
    assert tokens.renew(stale) is True
    assert tokens.headers() == {"X-Auth-Token": "service-2"}
    assert keystone.logins == 2


def test_a_client_gets_through_after_its_token_was_revoked(tokens: ServiceTokens) -> None:
    transport = Scripted((401, {}), (200, {}))
    assert rest(transport, tokens).request("GET", "/x").status == 200
    assert [headers["X-Auth-Token"] for _, _, headers, _ in transport.asked] == ["service-1", "service-2"]


def test_a_token_is_renewed_before_it_ends(keystone: Keystone, tokens: ServiceTokens, later: Later) -> None:
    keystone.tokens["service"] = token("nova", seconds=600)
    tokens.headers()
    later.offset = 470
    assert tokens.headers() == {"X-Auth-Token": "service-1"}
    later.offset = 490
    tokens._plugin.invalidate()
    assert tokens.headers() == {"X-Auth-Token": "service-2"}


def test_a_silent_identity_service_is_unavailable(tokens: ServiceTokens, keystone: Keystone) -> None:
    keystone.broken = True
    with pytest.raises(RemoteUnavailable, match="identity service"):
        tokens.headers()


def configured(text: str, tmp_path: Any) -> Any:
    path = tmp_path / "kilonova.conf"
    path.write_text(text)
    return load([path], warn=False)


LOGIN = f"auth_type = password\nauth_url = {URL}\nusername = nova\npassword = secret\nproject_name = service\n"


def test_credentials_come_from_the_first_group_that_has_them(keystone: Keystone, tmp_path: Any) -> None:
    conf = configured(f"[service_user]\n{LOGIN}", tmp_path)
    found = service_tokens(conf, ("placement", "service_user"), WsgiTransport(keystone))
    assert found.headers() == {"X-Auth-Token": "service-1"}


def test_no_credentials_at_all_names_the_groups_to_set(keystone: Keystone) -> None:
    with pytest.raises(CredentialsUnusable, match="placement, service_user"):
        service_tokens(load(warn=False), ("placement", "service_user"), WsgiTransport(keystone))


@pytest.mark.parametrize(
    ("text", "group", "expected"),
    [
        ("", "placement", "http://placement.test/One"),
        ("[placement]\nregion_name = Two\n", "placement", "http://placement.test/Two"),
        ("[placement]\nendpoint_override = http://elsewhere/\n", "placement", "http://elsewhere"),
        ("[glance]\nvalid-interfaces = public\n", "glance", "http://image.test/One"),
        ("", "cinder", "http://v.test/v3"),
        ("[neutron]\nendpoint_override = http://n:9696/v2.0/\n", "neutron", "http://n:9696"),
        ("[glance]\nendpoint_override = http://g/image\n", "glance", "http://g/image"),
        ("[cyborg]\nendpoint_override = http://a/accelerator/v2\n", "cyborg", "http://a/accelerator"),
        ("[cinder]\nendpoint_template = http://c/v3/%(project_id)s\n", "cinder", "http://c/v3"),
        ("[cinder]\ncatalog_info = volumev3:cinderv3:publicURL\n", "cinder", "http://v.test/v3"),
    ],
)
def test_the_address_is_the_configured_one_or_the_catalogs(
    text: str, group: str, expected: str, tokens: ServiceTokens, keystone: Keystone, tmp_path: Any
) -> None:
    client = rest_client(configured(text, tmp_path), group, WsgiTransport(keystone), tokens)
    assert client.url("/x") == f"{expected}/x"


def test_a_service_that_is_not_in_the_catalog_is_unavailable(tokens: ServiceTokens, keystone: Keystone) -> None:
    with pytest.raises(EndpointNotFound, match="network"):
        rest_client(load(warn=False), "neutron", WsgiTransport(keystone), tokens).request("GET", "/x")
