"""Requests that are wrong before anybody looks at what they are about: size, form, method, path, query."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kilonova.core import clock
from tests.http.bad_input.services import BY_NAME, TARGETS, UNKNOWN, Target
from tests.http.compute.cloud import BASE, Client, boot, remove

LISTS = {
    "compute": "/servers", "placement": "/resource_providers", "identity": "/v3/projects", "image": "/v2/images",
    "network": "/v2.0/networks", "volume": "/v3/volumes", "scheduler": "/decisions",
}  # fmt: skip
"""A path of each service that lists with GET."""
POSTED = LISTS | {"scheduler": "/simulate"}
"""A path of each service that takes a POST."""

by_service = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


def ask(
    client: Client, target: Target, method: str, path: str, body: bytes | None = None, token: str | None = None,
    version: str | None = None, **headers: str,
) -> tuple[int, Any, dict[str, str]]:
    """(status, document or text, headers). token "" sends none."""
    sent = target.headers(version or target.versions[-1])
    sent |= {} if token == "" else {"X-Auth-Token": token or client.token}
    sent |= {} if body is None else {"Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    status, answered, data = client.transport.send(method, BASE + target.prefix + path, sent, body)
    document = json.loads(data) if data and "json" in answered.get("content-type", "") else data.decode()
    return status, document, answered


@pytest.mark.parametrize("target", [one for one in TARGETS if one.name != "image"], ids=lambda one: one.name)
def test_a_body_that_is_too_large_is_refused_before_the_token_is_looked_at(target: Target, demo: Client) -> None:
    status, text, headers = ask(demo, target, "POST", LISTS[target.name], b" " * 114_689, token="")
    assert status == 413
    assert headers["content-type"].startswith("text/plain")
    assert "too large" in text


@by_service
def test_a_body_of_just_the_limit_is_read(target: Target, demo: Client) -> None:
    status, _, _ = ask(demo, target, "POST", POSTED[target.name], b" " * 114_688)
    assert status in (400, 403)


@by_service
def test_a_token_is_asked_for_before_the_body_is_looked_at(target: Target, demo: Client) -> None:
    status, _, headers = ask(demo, target, "POST", POSTED[target.name], b"{", token="")
    assert status == 401
    assert headers["www-authenticate"].startswith("Keystone uri=")


@by_service
def test_another_content_type_is_unsupported(target: Target, admin: Client) -> None:
    status, document, _ = ask(admin, target, "POST", POSTED[target.name], b"<a/>", Content_Type="application/xml")
    assert status == 415
    assert target.message(document)


@by_service
@pytest.mark.parametrize("method", ["DELETE", "PATCH", "PUT", "TRACE", "BREW"])
def test_a_wrong_method_is_not_served(target: Target, admin: Client, method: str) -> None:
    status, document, headers = ask(admin, target, method, LISTS[target.name])
    if target.name == "compute":
        assert status == 404  # it has no 405
        assert document.startswith("404 Not Found")
    else:
        assert status == 405
        assert "GET" in headers["allow"]


@by_service
@pytest.mark.parametrize("path", ["/nothing", "/{list}/", "/{list}//", "/{list}/%00", "/{list}/a/b/c/d", "/%2e%2e/x"])
def test_a_path_that_is_not_there_is_not_found(target: Target, admin: Client, path: str) -> None:
    status, _, _ = ask(admin, target, "GET", path.replace("/{list}", LISTS[target.name]))
    assert status in (404, 300)


ODD_IDS = (
    "..", "../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "a%00b",
    "%0d%0aX-Evil: 1", "%c3%28", "%ff", "x" * 5_000, "'; DROP TABLE servers; --", "-1", "99999999999999999999999",
    "%25s", "null", UNKNOWN + "%0a", "{id}", "%F0%9F%92%A9",
)  # fmt: skip


@by_service
@pytest.mark.parametrize("odd", ODD_IDS, ids=lambda odd: odd[:24])
def test_an_odd_id_is_not_found_whatever_is_asked_of_it(target: Target, odd: str, admin: Client) -> None:
    for method, template in sorted({(op.method, op.path) for op in target.ops() if "{" in op.path}):
        if method not in ("GET", "DELETE"):
            continue
        before, _, after = template.partition("{")
        path = before + odd + after.partition("}")[2].replace("{", "").replace("}", "")
        for version in target.versions:
            status, document, headers = ask(admin, target, method, path, version=version)
            assert status < 500, (method, path, version, document)
            assert "x-evil" not in headers
            assert "root:" not in str(document)


def parameters(target: Target) -> list[tuple[str, str, str]]:
    """(path, parameter, newest version) of every declared query parameter of a list."""
    return [
        (op.path, row.name, version or "")
        for op in target.ops() if op.method == "GET" and op.query is not None and "{" not in op.path
        for row in op.query.params
        for version in target.versions[-1:]
    ]  # fmt: skip


ODD_VALUES = (
    "", "-1", "x" * 3_000, "99999999999999999999999", "%00", "%ff", "%ED%A0%80", "a,b,,c", "((((", "1e400", "%0d%0a",
    "😀",
)  # fmt: skip


@by_service
def test_an_odd_value_of_a_query_parameter_breaks_nothing(target: Target, admin: Client, demo: Client) -> None:
    for path, name, version in parameters(target):
        for number, odd in enumerate(ODD_VALUES):
            client = (admin, demo)[number % 2]
            status, document, _ = ask(client, target, "GET", f"{path}?{name}={odd}", version=version or None)
            assert status < 500, (path, name, odd, document)
            if status == 400:
                assert target.message(document)


@by_service
def test_a_repeated_query_parameter_breaks_nothing(target: Target, admin: Client) -> None:
    for path, name, version in parameters(target):
        status, document, _ = ask(admin, target, "GET", f"{path}?{name}=1&{name}=2&{name}=", version=version or None)
        assert status < 500, (path, name, document)


@pytest.mark.parametrize(("version", "status"), [("2.74", 200), ("2.75", 400)])
def test_an_unknown_query_parameter_of_the_server_list_is_refused_from_2_75(
    version: str, status: int, demo: Client
) -> None:
    assert demo.at(version).status("GET", "/servers?nonsense=1") == status


@pytest.mark.parametrize("path", ["/os-hypervisors?limit=1&limit=2", "/os-hypervisors?with_servers=1&with_servers=1"])
def test_a_parameter_that_may_come_once_is_refused_when_repeated(path: str, admin: Client) -> None:
    admin.at("2.53").refused(400, "GET", path)


@pytest.mark.parametrize("limit", ["-1", "abc", "", "1.5", "%20"])
def test_a_limit_that_is_no_number_from_0_is_refused(limit: str, demo: Client) -> None:
    for path in ("/servers", "/servers/detail", "/flavors", "/flavors/detail"):
        demo.refused(400, "GET", f"{path}?limit={limit}")


@pytest.mark.parametrize("path", ["/servers", "/flavors"])
def test_a_marker_that_names_nothing_is_refused(path: str, demo: Client) -> None:
    demo.refused(400, "GET", f"{path}?marker={UNKNOWN}")


def test_the_project_in_the_address_is_the_tokens_own(demo: Client, alt: Client) -> None:
    assert demo.status("GET", f"/{demo.project}/servers") == 200
    demo.refused(400, "GET", f"/{alt.project}/servers")


@pytest.mark.parametrize("header", ["compute", "compute 2.1 2.2", "compute 2.01", "compute ٢.١", "compute -2", "2.1;"])
def test_an_odd_version_header_breaks_nothing(header: str, demo: Client) -> None:
    status, document, _ = ask(demo, BY_NAME["compute"], "GET", "/servers", OpenStack_API_Version=header)
    assert status in (200, 400), document


@pytest.mark.parametrize("pattern", ["(a%2B)%2B$", "^(a|a)*$", "(.*)*(.*)*(.*)*b"])
def test_no_expression_in_a_filter_holds_up_the_cloud(pattern: str, demo: Client, admin: Client) -> None:
    made = boot(demo, name="a" * 254 + "!")["id"]
    begin = clock.monotonic()
    demo.ok("GET", f"/servers?name={pattern}")
    admin.at("2.102").ok("GET", f"/flavors?name={pattern}")
    assert clock.monotonic() - begin < 2
    remove(demo, made)
