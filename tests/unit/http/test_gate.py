"""The compiled gate and the validator that words refusals say the same of every body, over all rows and many values."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kilonova.api.compute.rows import OPS
from kilonova.api.compute.versions import LINES
from kilonova.http.validate import Validator
from kilonova.http.versions import at, parse
from tests.http.bad_input.bodies import places, with_value


def schemas() -> list[tuple[str, dict[str, Any]]]:
    """Every different body of the Compute API, with the row and version it is of."""
    found: list[tuple[str, dict[str, Any]]] = []
    for op in OPS:
        for text in LINES:
            version = parse(text)
            kind = at(op.body, version) if version in op.range else None
            schema = None if kind is None else kind.schema(version)
            if schema is not None and all(schema != known for _, known in found):
                found.append((f"{op.method} {op.path} {op.action or ''} {text}", schema))
    return found


SCHEMAS = schemas()
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from((
        "", " ", "1", "-1", "true", "auto", "a\n", "x" * 256, "::1", "127.0.0.1", "/dev/vdb", "YQ==", "٣", "2.0", "1e3",
        "00000000-0000-4000-8000-000000000000", "\u2028", "é", "İ",
    )),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False), st.sampled_from((2.0, -0.0, 2**31, 2**63, 10**20)))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_one_takes_the_other_takes(data: st.DataObject) -> None:
    name, schema = data.draw(st.sampled_from(SCHEMAS))
    place = data.draw(st.sampled_from(list(places(schema))))
    body = with_value(schema, place, data.draw(VALUES))
    validator = Validator(schema)
    exact = not any(True for _ in validator._python().iter_errors(body))
    assert validator.fits(body) == exact, (name, place, body)
    if not exact:
        _, _, words, _ = validator.why_not(body)
        assert words


@pytest.mark.parametrize("schema", [schema for _, schema in SCHEMAS], ids=[name for name, _ in SCHEMAS])
def test_a_schema_is_one(schema: dict[str, Any]) -> None:
    jsonschema.Draft4Validator.check_schema(schema)
    before = copy.deepcopy(schema)
    Validator(schema).fits({})
    assert schema == before
