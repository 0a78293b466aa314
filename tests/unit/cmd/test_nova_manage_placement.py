"""`nova-manage placement`: which of our commands each is, with which exit codes; the mirror of aggregates."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.clients.placement import ProviderConflict, ProviderNotFound
from kilonova.cmd import main, nova_manage
from kilonova.cmd.aggregate_mirror import DONE, NO_NODE, NO_PROVIDER, NOT_CHANGED, SEVERAL_NODES, sync
from kilonova.cmd.placement_audit import Report
from kilonova.placement.store.operate.books import Finding

WRONG = Finding("missing", "server s", "holds nothing")


def words_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What `kilonova` is asked for by these words of nova-manage."""
    asked: list[str] = []

    def run(arguments: list[str]) -> int:
        asked.extend(arguments)
        return 0

    monkeypatch.setattr(main, "main", run)
    assert nova_manage.run(["--config-file", "f", "placement", *words]) == 0
    assert asked.pop(1) == "--config-file"
    assert asked.pop(1) == "f"
    return asked


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("audit --verbose", "placement audit --exit-codes audit"),
        ("audit --delete", "placement audit --exit-codes audit --fix --check orphan"),
        ("audit --resource_provider u", "placement audit --exit-codes audit --provider u"),
        ("audit --resource_provider=u", "placement audit --exit-codes audit --provider u"),
        ("heal_allocations", "placement heal --exit-codes heal_allocations --check missing"),
        ("heal_allocations --max-count 5 --instance=i --dry-run --skip-port-allocations",
         "placement heal --exit-codes heal_allocations --check missing --max-count 5 --consumer i --dry-run"),
        ("sync_aggregates --verbose", "aggregates sync"),
    ],
)  # fmt: skip
def test_novas_words_are_ours(monkeypatch: pytest.MonkeyPatch, words: str, ours: str) -> None:
    assert words_of(monkeypatch, *words.split()) == ours.split()


@pytest.mark.parametrize("words", ["--max-count 0", "--max-count=many", "--max-count", "--cell c", "--force"])
def test_options_that_cannot_be_used_end_with_127_and_a_sentence(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nova_manage.run(["placement", "heal_allocations", *words.split()]) == 127
    assert capsys.readouterr().err.startswith("nova-manage: --")


def report(codes: str, *reasons: str, dry_run: bool = False, fix: bool = True, limit: int | None = None) -> int:
    """The exit code after findings of which each repair answers one of the reasons (empty: it is repaired)."""
    made = Report(fix, dry_run, limit=limit, codes=codes)
    for reason in reasons:
        made.add(WRONG, lambda reason=reason: reason)  # type: ignore[misc]
    return made.show("json")


def test_the_exit_codes_of_audit_are_novas() -> None:
    assert report("audit") == 0
    assert report("audit", "", fix=False) == 3
    assert report("audit", "", "") == 4
    assert report("audit", "", "changed meanwhile") == 3
    failed = Report(True, False, codes="audit", failure="no")
    assert failed.show("json") == 1


def test_the_exit_codes_of_heal_allocations_are_novas() -> None:
    assert report("heal_allocations") == 4
    assert report("heal_allocations", "", "") == 0
    assert report("heal_allocations", "", "", "", limit=2) == 1
    assert report("heal_allocations", "", "no room") == 3
    assert report("heal_allocations", "", dry_run=True) == 0
    failed = Report(True, False, codes="heal_allocations", failure="no")
    assert failed.show("json") == 255


def test_no_more_is_repaired_than_asked_for() -> None:
    made, done = Report(True, False, limit=2), []
    for number in range(4):
        made.add(WRONG, lambda number=number: done.append(number) or "")  # type: ignore[misc,func-returns-value]
    assert done == [0, 1]


def test_a_check_that_is_not_asked_for_is_neither_shown_nor_repaired() -> None:
    made = Report(True, False, wants=lambda finding: finding.check == "orphan")
    made.add(WRONG, lambda: "never asked")
    assert (made.rows, made.wrong) == ([], 0)


class Mirror:
    """Placement's aggregates of a few providers, one of which others change as often as `busy` says."""

    def __init__(self, busy: int = 0, **held: set[str]) -> None:
        self.held, self.busy, self.puts = held, busy, 0

    def aggregates(self, uuid: str) -> tuple[list[str], int]:
        if uuid not in self.held:
            raise ProviderNotFound(provider=uuid, reason="gone")
        return sorted(self.held[uuid]), 1

    def set_aggregates(self, uuid: str, aggregates: set[str], generation: int) -> int:
        self.puts += 1
        if self.puts <= self.busy:
            raise ProviderConflict(provider=uuid, reason="generation")
        self.held[uuid] = set(aggregates)
        return generation + 1


def mirrored(mirror: Mirror, nodes: dict[str, list[str]], *hosts: str, dry_run: bool = False) -> list[int]:
    aggregate = {"name": "a", "uuid": "A", "hosts": list(hosts)}
    found: Any = mirror
    return [step.code for step in sync([aggregate], nodes, found, dry_run=dry_run)]


def test_a_host_is_put_where_its_aggregate_is_beside_what_it_is_in() -> None:
    mirror = Mirror(p={"B"}, q={"A"})
    assert mirrored(mirror, {"h": ["p"], "i": ["q"]}, "h", "i") == [DONE]
    assert mirror.held == {"p": {"A", "B"}, "q": {"A"}}
    assert mirror.puts == 1


def test_a_dry_run_changes_nothing() -> None:
    mirror = Mirror(p=set())
    assert mirrored(mirror, {"h": ["p"]}, "h", dry_run=True) == [DONE]
    assert mirror.puts == 0


def test_a_provider_that_changes_meanwhile_is_tried_again() -> None:
    mirror = Mirror(busy=2, p=set())
    assert mirrored(mirror, {"h": ["p"]}, "h") == [DONE]
    assert mirror.held == {"p": {"A"}}


def test_what_stands_against_it_has_novas_exit_codes() -> None:
    nodes = {"two": ["p", "q"], "lost": ["x"], "busy": ["p"]}
    found = mirrored(Mirror(busy=99, p=set()), nodes, "two", "gone", "lost", "busy")
    assert found == [NOT_CHANGED, NO_NODE, NO_PROVIDER, SEVERAL_NODES], "by the hosts' names"
