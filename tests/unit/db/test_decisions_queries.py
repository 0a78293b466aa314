"""Scheduling decisions are found by what they were about, and go by number and age."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

from kilonova.core import ids
from kilonova.core.decision import Decision, Outcome
from kilonova.db.queries import decisions
from kilonova.db.queries.decisions import DecisionFilter
from kilonova.sql.engine import Database

AT = datetime(2026, 1, 1, 12)


def made(**values: Any) -> Decision:
    return Decision(**({"at": AT, "outcome": Outcome.PLACED.value} | values))


def numbers(api: Database, **wanted: Any) -> list[int]:
    return [row.id for row in decisions.every(api, DecisionFilter(**wanted), 100)]


def test_a_decision_is_found_by_each_of_its_servers_and_by_its_request(api: Database) -> None:
    one, two, other = ids.new_uuid(), ids.new_uuid(), ids.new_uuid()
    both = made(servers=(one, two), request_id="req-1", winners={one: "h1"}, server_count=2)
    later = made(servers=(two,), request_id="req-1", outcome=Outcome.NO_VALID_HOST.value, at=AT + timedelta(hours=1))
    decisions.insert(api, [both])
    decisions.insert(api, [later, made(servers=(other,), request_id="req-2")])
    newest = decisions.numbers_of_server(api, two, 5)
    assert [decisions.get(api, number) for number in newest] == [later, both]
    assert decisions.numbers_of_server(api, one, 5) == [newest[1]]
    assert decisions.numbers_of_request(api, "req-1", 1) == [newest[0]]
    assert decisions.numbers_of_server(api, ids.new_uuid(), 5) == []
    assert decisions.get(api, 10**9) is None


def test_lists_are_newest_first_filtered_and_in_pages(api: Database) -> None:
    server = ids.new_uuid()
    decisions.insert(api, [
        made(servers=(server,), project_id="p", winners={server: "h1"}, milliseconds={"filters": 1.5, "claim": 2.0}),
        made(project_id="q", outcome=Outcome.NO_VALID_HOST.value, at=AT + timedelta(hours=1)),
        made(project_id="q", outcome=Outcome.FAILED.value, at=AT + timedelta(hours=2), scheduler="s2"),
    ])  # fmt: skip
    newest, middle, oldest = numbers(api)
    assert (numbers(api, project_id="q"), numbers(api, host="h1")) == ([newest, middle], [oldest])
    assert (numbers(api, outcome="failed"), numbers(api, server=server)) == ([newest], [oldest])
    assert numbers(api, since=AT + timedelta(hours=1), before=AT + timedelta(hours=2)) == [middle]
    page = decisions.every(api, DecisionFilter(), 2, newest)
    assert [row.id for row in page] == [middle, oldest]
    assert (page[1].host, page[1].milliseconds, page[1].created_at) == ("h1", 3.5, AT)
    assert len(decisions.newest(api, 2)) == 2


def test_no_more_than_the_number_that_is_kept_stay_and_their_servers_go_with_them(api: Database) -> None:
    servers = [ids.new_uuid() for _ in range(6)]
    decisions.insert(api, [made(servers=(server,)) for server in servers])
    kept = numbers(api)[:2]
    assert decisions.prune(api, 2, None) == 4
    assert numbers(api) == kept
    assert [bool(decisions.numbers_of_server(api, server, 1)) for server in servers] == [False] * 4 + [True] * 2
    assert decisions.prune(api, 2, None) == 0


def test_decisions_older_than_the_age_go_however_few_there_are(api: Database) -> None:
    decisions.insert(api, [made(), made(at=AT + timedelta(hours=2))])
    assert decisions.prune(api, 100, AT + timedelta(hours=1)) == 1
    assert [row.created_at for row in decisions.every(api, DecisionFilter(), 5)] == [AT + timedelta(hours=2)]


def test_several_schedulers_write_and_prune_at_once(api: Database) -> None:
    failed: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for _ in range(5):
                decisions.insert(api, [made(scheduler=name, servers=(ids.new_uuid(),)) for _ in range(4)])
                decisions.prune(api, 10, None)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(f"s{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    decisions.prune(api, 10, None)
    assert 0 < len(numbers(api)) <= 10
