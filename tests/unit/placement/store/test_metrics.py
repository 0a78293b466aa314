"""What the two ends of the store count."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from kilonova.core.metrics import Meters
from kilonova.placement.errors import ConcurrentUpdate
from kilonova.placement.metrics import METRICS
from kilonova.placement.store import keeper
from kilonova.placement.store.keeper import Keeper
from kilonova.placement.store.schema import inventories
from kilonova.placement.store.transactions import Race, Transaction, Writer
from kilonova.sql.engine import Database
from tests.unit.core.test_metrics import look
from tests.unit.placement.store.conftest import Store

RACE, LOST = (("kilonova_placement_write_conflicts_total", kind) for kind in ("race", "lost"))
REFRESHES = "kilonova_placement_snapshot_refresh_seconds_count"


class Races:
    """Work that meets somebody else so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, transaction: Transaction) -> None:
        if self.left:
            self.left -= 1
            raise Race


@pytest.fixture
def metered(database: Database) -> tuple[Store, Meters]:
    meters = Meters(METRICS)
    writer = Writer(database, retries=3, meters=meters)
    return Store(database, writer, Keeper(writer)), meters


def test_each_try_after_a_race_counts_and_the_last_one_as_lost(metered: tuple[Store, Meters]) -> None:
    store, meters = metered
    store.writer.run(Races(2))
    first = look(meters)
    with pytest.raises(ConcurrentUpdate):
        store.writer.run(Races(3))
    second = look(meters)
    assert (first[RACE], LOST in first) == (2, False)
    assert (second[RACE], second[LOST]) == (4, 1)


def test_a_refresh_says_whether_changes_were_applied_or_all_was_read(
    metered: tuple[Store, Meters], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, meters = metered
    host = store.provider("host", VCPU=10)
    store.keeper.current()
    store.keeper.current()
    before = look(meters)
    assert (before[REFRESHES, "rebuilt"], before[REFRESHES, "applied"]) == (1, 1)  # nothing new is no refresh
    monkeypatch.setattr(keeper, "CHECK_SECONDS", -1.0)
    with store.database.write() as connection:
        connection.execute(sa.update(inventories).values(used=3))
    assert store.used(host) == {"VCPU": 3}
    after = look(meters)
    assert after["kilonova_placement_snapshot_drifts_total", ""] == 1
    assert (after[REFRESHES, "rebuilt"], after[REFRESHES, "applied"]) == (2, 1)
