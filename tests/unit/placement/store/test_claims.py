"""Claims: exact under any number of writers, and each refusal for its own reason."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from kilonova.core import ids
from kilonova.core.errors import Conflict
from kilonova.placement.errors import (
    BadRequest,
    ConcurrentUpdate,
    ConsumerGenerationConflict,
    NoSuch,
    Refused,
)
from kilonova.placement.store import claims, reading
from kilonova.placement.store.claims import Claim
from kilonova.placement.store.inventories import Inventory
from kilonova.placement.store.schema import consumers, resource_providers
from tests.unit.placement.store.conftest import Store

WRITERS = 8


def _in_threads(work: Callable[[int], None]) -> list[BaseException]:
    broken: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return broken


def test_eight_writers_fill_hot_providers_to_the_last_unit_and_never_above(store: Store) -> None:
    hosts = [store.provider(f"host{n}", VCPU=40, MEMORY_MB=4000) for n in range(2)]
    done, refused = [0] * WRITERS, [0] * WRITERS

    def work(n: int) -> None:
        for turn in range(16):
            host = hosts[(turn + n) % 2]
            try:
                store.claim(ids.new_uuid(), {host: {"VCPU": 1, "MEMORY_MB": 10}})
                done[n] += 1
            except Refused:
                refused[n] += 1

    assert _in_threads(work) == []
    assert sum(done) == 80
    assert sum(refused) == WRITERS * 16 - 80
    store.assert_consistent()
    assert [store.used(host)["VCPU"] for host in hosts] == [40, 40]


def test_eight_writers_moving_claims_between_small_providers_stay_exact(store: Store) -> None:
    hosts = [store.provider(f"host{n}", VCPU=6, DISK_GB=60) for n in range(4)]
    generations: dict[str, int | None] = {}

    def work(n: int) -> None:
        chance = random.Random(n)
        mine = [ids.new_uuid() for _ in range(2)]
        for _ in range(12):
            wanted = []
            for consumer in mine:
                some = chance.sample(hosts, chance.randint(0, 2))
                amounts = {host: {"VCPU": chance.randint(1, 2), "DISK_GB": 10} for host in some}
                wanted.append(Claim(consumer, amounts, "p", "u", None, True, generations.get(consumer)))
            try:
                store.write(*wanted)
            except Refused:
                continue
            for claim in wanted:
                before = generations.get(claim.consumer)
                generations[claim.consumer] = ((before or 0) + 1) if claim.amounts else None

    assert _in_threads(work) == []
    store.assert_consistent()


def test_a_provider_generation_counts_the_claims_on_it(store: Store) -> None:
    host = store.provider("host", VCPU=1000)

    def work(n: int) -> None:
        for _ in range(5):
            store.claim(ids.new_uuid(), {host: {"VCPU": 1}})

    assert _in_threads(work) == []
    with store.database.read() as connection:
        generation = connection.execute(sa.select(resource_providers.c.generation)).scalar_one()
    assert generation == 1 + WRITERS * 5


def test_one_consumer_written_by_many_is_won_once_per_generation(store: Store) -> None:
    host, consumer = store.provider("host", VCPU=1000), ids.new_uuid()
    won: list[int] = []

    def work(n: int) -> None:
        try:
            store.claim(consumer, {host: {"VCPU": n + 1}})
            won.append(n)
        except ConsumerGenerationConflict:
            pass

    assert _in_threads(work) == []
    assert len(won) == 1
    assert store.used(host) == {"VCPU": won[0] + 1}


def test_each_refusal_has_its_reason(store: Store) -> None:
    host = store.provider("host", VCPU=Inventory(10, min_unit=2, max_unit=8, step_size=2), MEMORY_MB=100)
    refusals: list[tuple[dict[str, dict[str, int]], type[Exception], str]] = [
        ({host: {"VCPU": 1}}, Refused, "violate inventory constraints"),
        ({host: {"VCPU": 3}}, Refused, "violate inventory constraints"),
        ({host: {"VCPU": 10}}, Refused, "violate inventory constraints"),
        ({host: {"MEMORY_MB": 101}}, Refused, "exceed the capacity"),
        ({host: {"DISK_GB": 1}}, Refused, "Inventory for 'DISK_GB'"),
        ({host: {"NO_SUCH": 1}}, BadRequest, "NO_SUCH"),
        ({ids.new_uuid(): {"VCPU": 2}}, BadRequest, "does not exist"),
    ]
    for amounts, kind, words in refusals:
        with pytest.raises(kind, match=words):
            store.claim(ids.new_uuid(), amounts)
    assert store.used(host) == {"VCPU": 0, "MEMORY_MB": 0}
    with store.database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(consumers)).scalar() == 0


def test_a_request_is_all_or_nothing(store: Store) -> None:
    first, second = store.provider("one", VCPU=10), store.provider("two", VCPU=1)
    with pytest.raises(Refused):
        store.claim(ids.new_uuid(), {first: {"VCPU": 5}, second: {"VCPU": 2}})
    assert store.used(first) == {"VCPU": 0}


def test_everything_moves_between_full_providers_in_one_write(store: Store) -> None:
    first, second = store.provider("one", VCPU=4), store.provider("two", VCPU=4)
    a, b = ids.new_uuid(), ids.new_uuid()
    store.claim(a, {first: {"VCPU": 4}})
    store.claim(b, {second: {"VCPU": 4}})
    store.write(
        Claim(a, {second: {"VCPU": 4}}, "p", "u", None, True, 1),
        Claim(b, {first: {"VCPU": 4}}, "p", "u", None, True, 1),
    )
    store.assert_consistent()
    with store.database.read() as connection:
        found = reading.consumer(connection, a)
    assert found is not None
    assert [(held.uuid, held.resources) for held in found.holdings] == [(second, {"VCPU": 4})]
    assert found.generation == 2


def test_an_overcommitted_provider_can_be_relieved_but_not_loaded(store: Store) -> None:
    host, consumer = store.provider("host", VCPU=10), ids.new_uuid()
    store.claim(consumer, {host: {"VCPU": 10}})
    store.stock(host, VCPU=4)
    store.claim(consumer, {host: {"VCPU": 9}}, 1)
    store.claim(consumer, {host: {"VCPU": 9}}, 2)
    with pytest.raises(Refused, match="exceed the capacity"):
        store.claim(consumer, {host: {"VCPU": 10}}, 3)
    with pytest.raises(Refused, match="exceed the capacity"):
        store.claim(ids.new_uuid(), {host: {"VCPU": 1}})


@pytest.mark.parametrize("given", [None, 0, 2, 99])
def test_a_wrong_consumer_generation_is_refused(store: Store, given: int | None) -> None:
    host, consumer = store.provider("host", VCPU=10), ids.new_uuid()
    store.claim(consumer, {host: {"VCPU": 1}})
    with pytest.raises(ConsumerGenerationConflict, match="consumer generation conflict"):
        store.claim(consumer, {host: {"VCPU": 2}}, given)
    assert store.used(host) == {"VCPU": 1}


def test_a_generation_for_an_unknown_consumer_is_refused(store: Store) -> None:
    host = store.provider("host", VCPU=10)
    with pytest.raises(ConsumerGenerationConflict):
        store.claim(ids.new_uuid(), {host: {"VCPU": 1}}, 1)


def test_emptying_an_unknown_consumer_leaves_no_record(store: Store) -> None:
    host, consumer = store.provider("host", VCPU=10), ids.new_uuid()
    store.claim(consumer, {})
    store.claim(consumer, {host: {"VCPU": 1}})
    assert store.used(host) == {"VCPU": 1}


def test_a_consumer_ends_with_its_last_allocation(store: Store) -> None:
    host, consumer = store.provider("host", VCPU=10), ids.new_uuid()
    store.claim(consumer, {host: {"VCPU": 1}})
    store.claim(consumer, {}, 1)
    assert store.used(host) == {"VCPU": 0}
    store.claim(consumer, {host: {"VCPU": 1}})
    claims.release(store.writer, consumer)
    assert store.used(host) == {"VCPU": 0}
    with pytest.raises(NoSuch):
        claims.release(store.writer, consumer)


def test_a_release_leaves_provider_generations_alone_and_a_write_moves_them(store: Store) -> None:
    host, consumer = store.provider("host", VCPU=10), ids.new_uuid()
    statement = sa.select(resource_providers.c.generation)
    seen = []
    for act in (
        lambda: store.claim(consumer, {host: {"VCPU": 1}}),
        lambda: store.claim(consumer, {}, 1),
        lambda: store.claim(consumer, {host: {"VCPU": 1}}),
        lambda: claims.release(store.writer, consumer),
    ):
        act()
        with store.database.read() as connection:
            seen.append(connection.execute(statement).scalar_one())
    assert seen == [2, 3, 4, 4]


def test_an_out_of_date_id_of_a_provider_made_anew_is_looked_up_again(store: Store) -> None:
    host = store.provider("host", VCPU=10)
    claims.write(
        store.writer, store.keeper.latest.names, [Claim(ids.new_uuid(), {host: {"VCPU": 1}}, "p", "u")],
        known={host: 12345}, incomplete=claims.Incomplete(),
    )  # fmt: skip
    assert store.used(host) == {"VCPU": 1}


def test_an_owner_that_is_not_named_is_the_placeholder_and_later_kept(store: Store) -> None:
    host, consumer = store.provider("host", VCPU=10), ids.new_uuid()
    store.write(Claim(consumer, {host: {"VCPU": 1}}))
    with store.database.read() as connection:
        first = reading.consumer(connection, consumer)
    store.write(Claim(consumer, {host: {"VCPU": 1}}, "p", "u", "INSTANCE"))
    store.write(Claim(consumer, {host: {"VCPU": 2}}))
    with store.database.read() as connection:
        last = reading.consumer(connection, consumer)
    assert first is not None
    assert last is not None
    assert (first.project_id, first.user_id, first.consumer_type) == (*[claims.Incomplete().project_id] * 2, "unknown")
    assert (last.project_id, last.user_id, last.consumer_type, last.generation) == ("p", "u", "INSTANCE", 3)


def test_a_race_without_end_is_told_as_a_concurrent_update(store: Store) -> None:
    host = store.provider("host", VCPU=10)
    with pytest.raises(ConcurrentUpdate) as caught:
        store.writer.run(lambda tx: _lose())
    assert isinstance(caught.value, Conflict)
    assert store.used(host) == {"VCPU": 0}


def _lose() -> None:
    from kilonova.placement.store.transactions import Race

    raise Race
