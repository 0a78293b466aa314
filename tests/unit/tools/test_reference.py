from __future__ import annotations

import pytest

from tools import reference


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


def test_there_is_a_page_for_each_table_and_no_other(pages: dict[str, str]) -> None:
    assert {path.name for path in reference.FOLDER.iterdir()} == pages.keys()


@pytest.mark.parametrize(
    "name", ["operations.md", "states.md", "configuration.md", "policies.md", "calls.md", "metrics.md"]
)
def test_the_page_says_what_the_rows_say(name: str, pages: dict[str, str]) -> None:
    assert (reference.FOLDER / name).read_text() == pages[name], "make docs writes it anew"


def test_every_service_has_operations() -> None:
    assert [title for title, _, module in reference.SERVICES if not reference.rows_of(module)] == []
