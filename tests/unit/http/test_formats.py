from __future__ import annotations

import pytest

from kilonova.api.compute import rows
from kilonova.http import formats

assert rows  # brings every resource's own formats


@pytest.mark.parametrize("word", sorted(formats.FORMATS))
def test_what_a_person_is_told_of_a_format_is_a_sentence(word: str) -> None:
    said = formats.words(word)
    assert said.startswith("It ")
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("integer:1|5", "It is not an integer of at least 1 and at most 5."),
        ("integer:|5", "It is not an integer of at most 5."),
        ("integer:|", "It is not an integer."),
    ],
)
def test_bounds_of_integers_are_told(word: str, said: str) -> None:
    assert formats.words(word) == said
