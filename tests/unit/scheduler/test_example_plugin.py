"""The example package of docs/extend, loaded as an installed one is: by its metadata, which its pyproject describes."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.core.request_spec import ImageSpec
from kilonova.core.scheduling import NoValidHost, PluginBroken, UnknownPlugin
from kilonova.scheduler import registry
from kilonova.scheduler.plugins import Additions
from kilonova.scheduler.settings import ALL_WEIGHERS, SchedulerSettings
from kilonova.scheduler.weighing import Ranking
from tests.scheduler.states import aggregate, request, state

PACKAGE = Path(__file__).parents[3] / "docs/extend/example_plugin"


def installed(directory: Path, name: str, entries: dict[str, dict[str, str]]) -> None:
    """What an installer leaves of a package beside its code."""
    info = directory / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    text = ""
    for group, rows in entries.items():
        text += f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items())
    (info / "entry_points.txt").write_text(text)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed(tmp_path, "roomy_scheduler", project["entry-points"])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(PACKAGE))
    yield
    for module in [name for name in sys.modules if name.startswith("roomy_scheduler")]:
        del sys.modules[module]


@pytest.mark.usefixtures("example")
def test_its_filter_is_enabled_by_its_name_and_keeps_room() -> None:
    (row,) = registry.enabled_filters(SchedulerSettings(enabled_filters=("RoomyFilter",)))
    check = row.prepare(request(extra_specs={"roomy:min_free_mb": "1000"}))
    assert check is not None
    assert check(state(free_ram_mb=3048)).passed
    assert str(check(state(free_ram_mb=3047))) == "3047 MiB are free, wanted 3048"
    assert row.prepare(request()) is None
    with pytest.raises(NoValidHost, match="is no number: much"):
        row.prepare(request(extra_specs={"roomy:min_free_mb": "much"}))


@pytest.mark.usefixtures("example")
def test_its_weigher_stands_beside_ours_with_a_multiplier_of_its_own() -> None:
    rows = registry.enabled_weighers(SchedulerSettings(weight_classes=(ALL_WEIGHERS, "QuietestWeigher")))
    assert [row.name for row in rows] == [*registry.WEIGHERS, "QuietestWeigher"]
    few, many = state("few", num_instances=1), state("many", num_instances=3)
    scores, _ = Ranking(rows[-1:], request(), [few, many]).scores([0, 1])
    assert scores.tolist() == [0.5, 0.0]
    loud = aggregate("loud", "few", metadata={"quietest_weight_multiplier": "4"})
    states = [state("few", num_instances=1, aggregates=(loud,)), many]
    scores, _ = Ranking(rows[-1:], request(aggregates=(loud,)), states).scores([0, 1])
    assert scores.tolist() == [4.0, 0.0]


@pytest.mark.usefixtures("example")
def test_its_request_filter_runs_after_ours() -> None:
    rows = registry.enabled_request_filters(SchedulerSettings(request_filters=("licensed_filter",)))
    assert rows[:-1] == registry.REQUEST_FILTERS
    licensed = request(image_spec=ImageSpec(properties={"license_vendor": "acme"}))
    assert rows[-1].apply(licensed) == Additions(required=frozenset({"CUSTOM_LICENSE_ACME"}))
    assert rows[-1].apply(request()) is None


@pytest.mark.usefixtures("example")
def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(UnknownPlugin, match="request_filters names licenced_filter, which is none of: licensed_filter"):
        registry.enabled_request_filters(SchedulerSettings(request_filters=("licenced_filter",)))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere_at_all:FILTER", "Broken, which cannot be used: ModuleNotFoundError"),
        ("json:dumps", "Broken, which cannot be used: it is a function, not a Filter"),
        ("kilonova.scheduler.weighers.ram:WEIGHER", "it is a Weigher, not a Filter"),
    ],
)
def test_a_package_that_cannot_be_used_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, words: str
) -> None:
    installed(tmp_path, "broken", {"kilonova.scheduler.filters": {"Broken": target}})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginBroken, match=words):
        registry.enabled_filters(SchedulerSettings(enabled_filters=("Broken",)))
