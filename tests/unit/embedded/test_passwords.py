"""Secrets as hashes, and the memory of right ones."""

from __future__ import annotations

import pytest

from kilonova.embedded.identity import passwords
from kilonova.embedded.identity.passwords import Verifier, hash_secret


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The secrets for which the dear function ran."""
    done: list[str] = []
    scrypt = passwords._scrypt

    def counted(secret: str, *rest: object) -> bytes:
        done.append(secret)
        return scrypt(secret, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(passwords, "_scrypt", counted)
    return done


@pytest.mark.parametrize("secret", ["pw", "ünïcode ✓", "x" * 4096, "\ud800"])
def test_only_the_right_secret_matches(secret: str) -> None:
    hashed = hash_secret(secret)
    assert secret not in hashed
    assert Verifier().matches(secret, hashed)
    assert not Verifier().matches(secret + "x", hashed)


def test_the_same_secret_is_hashed_differently_each_time() -> None:
    assert hash_secret("pw") != hash_secret("pw")


def test_a_right_secret_is_remembered_a_wrong_one_never(work: list[str]) -> None:
    verifier, hashed = Verifier(), hash_secret("pw")
    assert [verifier.matches(secret, hashed) for secret in ("pw", "pw", "no", "no", "pw")] == [
        True, True, False, False, True]
    assert work == ["pw", "pw", "no", "no"]


def test_a_changed_hash_is_not_remembered(work: list[str]) -> None:
    verifier = Verifier()
    assert verifier.matches("pw", hash_secret("pw"))
    assert not verifier.matches("pw", hash_secret("other"))


def test_an_unknown_user_costs_as_much_as_a_wrong_password(work: list[str]) -> None:
    verifier = Verifier()
    assert not verifier.matches("pw", None)
    work.clear()
    assert not verifier.matches("pw", None)
    assert work == ["pw"]


def test_a_secret_is_known_from_when_it_was_set(work: list[str]) -> None:
    verifier = Verifier()
    hashed = verifier.hash("pw")
    assert verifier.matches("pw", hashed)
    assert not verifier.matches("no", hashed)
    assert work == ["pw", "no"]
