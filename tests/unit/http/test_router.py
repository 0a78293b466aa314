"""Routes: literals before variables, no trailing slashes, names that belong to the rows."""

from __future__ import annotations

import pytest

from kilonova.http.op import Op
from kilonova.http.router import Router


def _none(req: object) -> None:
    return None


DETAIL = Op("GET", "/servers/detail", _none)
SHOW = Op("GET", "/servers/{id}", _none)
DROP = Op("DELETE", "/servers/{id}", _none)
TAGS = Op("GET", "/servers/{server_id}/tags/{id}", _none)
DEEP = Op("GET", "/servers/detail/deep", _none)
ROOT = Op("GET", "/", _none)
ROUTER = Router((DETAIL, SHOW, DROP, TAGS, DEEP, ROOT))


def found(path: str, method: str = "GET") -> tuple[Op, dict[str, str]] | None:
    hit = ROUTER.find(path.split("/")[1:])
    if hit is None or method not in hit[0].methods:
        return None
    op = hit[0].methods[method][0]
    return op, dict(zip(hit[0].names[id(op)], hit[1], strict=True))


@pytest.mark.parametrize(("path", "op", "values"), [
    ("/", ROOT, {}),
    ("/servers/detail", DETAIL, {}),
    ("/servers/1", SHOW, {"id": "1"}),
    ("/servers/details", SHOW, {"id": "details"}),
    ("/servers/1/tags/t", TAGS, {"server_id": "1", "id": "t"}),
    ("/servers/detail/deep", DEEP, {}),
    ("/servers/detail/tags/t", TAGS, {"server_id": "detail", "id": "t"}),
])  # fmt: skip
def test_a_path_finds_its_row(path: str, op: Op, values: dict[str, str]) -> None:
    assert found(path) == (op, values)


@pytest.mark.parametrize("path", [
    "", "/servers", "/servers/", "/servers/1/", "/servers//tags/t", "//servers/1", "/Servers/1", "/servers/1/tags",
    "/servers/1/tags/t/u",
])  # fmt: skip
def test_other_paths_find_none(path: str) -> None:
    assert found(path) is None


def test_one_place_has_a_row_for_each_method() -> None:
    assert found("/servers/1", "DELETE") == (DROP, {"id": "1"})
    assert found("/servers/1", "PUT") is None


def test_first_segments_are_known() -> None:
    assert ROUTER.starts("servers")
    assert not ROUTER.starts("detail")
