"""The names operators configure, and the settings they come from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kilonova.conf import load
from kilonova.core.scheduling import UnknownPlugin
from kilonova.scheduler import registry, settings
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.states import request, state


def test_the_key_of_every_row_is_its_name() -> None:
    for rows in (registry.FILTERS, registry.WEIGHERS):
        assert all(name == row.name for name, row in rows.items())  # type: ignore[attr-defined]


def test_filters_are_enabled_in_the_order_of_the_option() -> None:
    chosen = SchedulerSettings(enabled_filters=("ImagePropertiesFilter", "ComputeFilter"))
    assert [row.name for row in registry.enabled_filters(chosen)] == ["ImagePropertiesFilter", "ComputeFilter"]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("nova.scheduler.weights.all_weighers",), list(registry.WEIGHERS)),
        (("nova.scheduler.weights.ram.RAMWeigher",), ["RAMWeigher"]),
        (("CPUWeigher", "RAMWeigher", "CPUWeigher"), ["CPUWeigher", "RAMWeigher"]),
        ((), []),
    ],
)
def test_weighers_are_all_or_those_named(classes: tuple[str, ...], expected: list[str]) -> None:
    chosen = SchedulerSettings(weight_classes=classes)
    assert [row.name for row in registry.enabled_weighers(chosen)] == expected


def test_an_unknown_name_stops_the_start_and_is_named() -> None:
    with pytest.raises(UnknownPlugin, match="enabled_filters names RetryFilter, which is none of: Aggregate"):
        registry.enabled_filters(SchedulerSettings(enabled_filters=("RetryFilter",)))
    with pytest.raises(UnknownPlugin, match="weight_classes names NoWeigher"):
        registry.enabled_weighers(SchedulerSettings(weight_classes=("NoWeigher",)))


def test_only_filters_that_are_offered_can_be_enabled() -> None:
    offered = ("nova.scheduler.filters.compute_filter.ComputeFilter",)
    chosen = SchedulerSettings(available_filters=offered, enabled_filters=("ComputeFilter",))
    assert len(registry.enabled_filters(chosen)) == 1
    with pytest.raises(UnknownPlugin, match="enabled_filters names AllHostsFilter, which is none of: ComputeFilter"):
        registry.enabled_filters(SchedulerSettings(available_filters=offered, enabled_filters=("AllHostsFilter",)))


def test_an_installed_package_adds_a_filter_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    row = registry.FILTERS["ComputeFilter"]

    def installed(*, group: str, name: str) -> list[Any]:
        assert (group, name) == ("kilonova.scheduler.filters", "SiteFilter")
        return [SimpleNamespace(load=lambda: row)]

    monkeypatch.setattr(registry, "entry_points", installed)
    assert registry.enabled_filters(SchedulerSettings(enabled_filters=("SiteFilter",))) == (row,)


def test_every_multiplier_that_a_weigher_names_is_a_setting() -> None:
    for row in registry.WEIGHERS.values():
        assert isinstance(getattr(SchedulerSettings(), row.multiplier), float)


def test_the_settings_of_a_configuration_without_lines_are_the_defaults() -> None:
    assert settings.from_conf(load.load(warn=False)) == SchedulerSettings()


def test_settings_are_read_from_the_groups_nova_has() -> None:
    conf = load.load(
        overrides={"filter_scheduler.enabled_filters": ["ComputeFilter"], "scheduler.max_attempts": 5,
                   "service_down_time": 7},
        warn=False,
    )  # fmt: skip
    assert settings.from_conf(conf) == SchedulerSettings(
        enabled_filters=("ComputeFilter",), max_attempts=5, service_down_time=7
    )


def test_the_example_for_plugin_writers_works() -> None:
    page = (Path(__file__).parents[3] / "docs/extend/scheduler-plugins.md").read_text(encoding="utf-8")
    example: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], example)
    check = example["FILTER"].prepare(request(extra_specs={"my:min_free_mb": "5"}))
    assert check(state(free_ram_mb=5)).passed
    assert str(check(state(free_ram_mb=4))) == "it has 4 MiB free, wanted 5"
    assert example["FILTER"].prepare(request()) is None
    assert example["WEIGHER"].weigh(request(), [state(num_instances=3)]) == [-3]
    assert isinstance(getattr(SchedulerSettings(), example["WEIGHER"].multiplier), float)
