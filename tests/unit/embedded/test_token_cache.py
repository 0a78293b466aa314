"""What is remembered of tokens, and that it is forgotten in time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from kilonova.embedded.identity.world import Revocation, Token, TokenCache

TOKEN = Token(
    id="t1", user={"id": "u1"}, user_domain={}, project={"id": "p1"}, project_domain={}, domain=None, system=False,
    roles=(), methods=(), audit_id="a", issued_at=datetime(2030, 1, 1), expires_at=datetime(2030, 1, 2),
    credential=None,
)  # fmt: skip


@pytest.mark.parametrize(("revocation", "covered"), [
    (Revocation(), True), (Revocation(token="t1"), True), (Revocation(token="t2"), False),
    (Revocation(user_id="u1"), True), (Revocation(user_id="u2"), False), (Revocation(project_id="p1"), True),
    (Revocation(project_id="p2"), False), (Revocation(user_id="u2", project_id="p1"), True),
])  # fmt: skip
def test_a_revocation_drops_the_tokens_it_covers_and_no_others(revocation: Revocation, covered: bool) -> None:
    cache = TokenCache()
    cache.put(TOKEN, cache.generation)
    assert cache.get("t1") == TOKEN
    cache.drop(revocation)
    assert (cache.get("t1") is None) is covered


def test_a_project_less_token_is_not_covered_by_a_projects_end() -> None:
    assert not Revocation(user_id="u2").covers(replace(TOKEN, project=None))


def test_what_was_read_before_a_revocation_is_not_kept_after_it() -> None:
    cache = TokenCache()
    generation = cache.generation
    cache.drop(Revocation(user_id="u1"))
    cache.put(TOKEN, generation)
    assert cache.get("t1") is None
    cache.put(TOKEN, cache.generation)
    assert cache.get("t1") == TOKEN


def test_a_revocation_does_not_print_the_token() -> None:
    assert "secret" not in repr(Revocation(token="t1", secret="the-token"))
