"""Pages: their size, and the link that follows a full one (errors.md 9)."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.http import paging
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request
from tests.unit.http.ask import app, ask

MOST = 3
NUMBERS = range(7)


def things(req: Request) -> dict[str, Any]:
    size = paging.page_size(req, MOST)
    after = int(req.query.get("marker", -1))
    found = [number for number in NUMBERS if number > after][:size]
    link = paging.next_link(req, "things", len(found), size, str(found[-1]) if found else "")
    return paging.with_links({"things": found}, "things_links", link)


SERVICE = app(Op("GET", "/things", things, query=Query((paging.LIMIT, paging.MARKER), open=True)))


def get(path: str) -> Any:
    answer = ask(SERVICE, "GET", path)
    assert answer.status == 200, answer.data
    return answer.body


def link(document: Any) -> str | None:
    if "things_links" not in document:
        return None
    (found,) = document["things_links"]
    assert found["rel"] == "next"
    return str(found["href"])


@pytest.mark.parametrize(("query", "count"), [
    ("", MOST), ("?limit=2", 2), ("?limit=3", 3), ("?limit=99", MOST), ("?limit=0", 0), ("?limit=1&limit=2", 2),
    ("?limit=99999999999999999999", MOST),
])  # fmt: skip
def test_a_page_is_the_smaller_of_limit_and_maximum(query: str, count: int) -> None:
    assert len(get("/things" + query)["things"]) == count


@pytest.mark.parametrize("limit", ["-1", "x", "", "1.5", "%201"])
def test_a_limit_that_is_no_number_from_0_is_refused(limit: str) -> None:
    assert ask(SERVICE, "GET", f"/things?limit={limit}").status == 400


def test_a_full_page_has_a_link_even_if_it_is_the_last() -> None:
    assert link(get("/things?limit=2")) == "http://127.0.0.1/v2.1/things?limit=2&marker=1"
    assert link(get("/things?limit=2&marker=4")) == "http://127.0.0.1/v2.1/things?limit=2&marker=6"
    assert link(get("/things?limit=2&marker=6")) is None


@pytest.mark.parametrize("path", ["/things?limit=0", "/things?marker=5"])
def test_an_empty_or_short_page_has_none(path: str) -> None:
    assert link(get(path)) is None


def test_the_link_keeps_the_project_and_all_parameters_in_order_with_one_marker() -> None:
    found = link(get("/abc0/things?z=%26%C3%A4&marker=0&a=&limit=2"))
    assert found == "http://127.0.0.1/v2.1/abc0/things?a=&limit=2&marker=2&z=%26%C3%A4"


def test_following_links_shows_everything_once() -> None:
    seen, path = [], "/things?limit=2"
    while True:
        page = get(path)
        seen += page["things"]
        href = link(page)
        if href is None:
            break
        path = href.removeprefix("http://127.0.0.1/v2.1")
    assert seen == list(NUMBERS)
