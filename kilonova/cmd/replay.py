"""`kilonova replay FILE`: recorded requests scheduled twice, offline: under the configuration, and with what is changed
by --set and --ratio. Compared are what found no host, and how the hosts are filled.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kilonova.cmd import scheduler_api
from kilonova.core.errors import Invalid

if TYPE_CHECKING:
    from kilonova.scheduler.replay import Result
    from kilonova.scheduler.settings import SchedulerSettings

_RATIOS: Final = ("cpu", "ram", "disk")


class OptionUnusable(Invalid):
    code, message = "option_unusable", "--set {option} cannot be used: {reason}."


class RatioUnusable(Invalid):
    code, message = "ratio_unusable", "--ratio {ratio} cannot be used: it is cpu, ram or disk, and a number above zero."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="what `kilonova record` wrote")
    text = "the configuration that both runs begin from (default: the defaults)"
    add("--config-file", metavar="FILE", type=Path, action="append", default=[], help=text)
    text = "an option of the scheduler, for the second run: enabled_filters=A,B or ram_weight_multiplier=-1; repeatable"
    add("--set", metavar="OPTION=VALUE", action="append", default=[], dest="changes", help=text)
    text = "allocation ratio of all hosts, for the second run; repeatable"
    add("--ratio", metavar="cpu|ram|disk=NUMBER", action="append", default=[], help=text)
    add("--empty", action="store_true", help="the hosts begin without servers")
    add("--seed", type=int, default=0, metavar="N", help="what randomness is drawn from (default %(default)s)")
    add("-f", "--format", choices=("table", "json"), default="table", help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """Replay twice and print both."""
    from kilonova.compute import recording
    from kilonova.conf.load import load
    from kilonova.scheduler import replay, settings

    recorded = recording.read(scheduler_api.read_json(arguments.file))
    base = settings.from_conf(load(arguments.config_file, warn=False))
    terms = replay.Terms(base, empty=arguments.empty, seed=arguments.seed)
    other = replace(terms, settings=_changed(base, arguments.changes), ratios=_ratios(arguments.ratio))
    before, after = replay.replay(recorded, terms), replay.replay(recorded, other)
    _show(before, after, replay.moved(before, after), arguments.format)
    return 0


def _changed(base: SchedulerSettings, changes: list[str]) -> SchedulerSettings:
    """The settings with options in the place of theirs, read as what they are. OptionUnusable."""
    known = {field.name for field in fields(base)}
    given: dict[str, Any] = {}
    for change in changes:
        name, separator, text = change.partition("=")
        if not separator or name not in known:
            raise OptionUnusable(option=change, reason="it is not OPTION=VALUE with an option of the scheduler")
        try:
            given[name] = _read(text, getattr(base, name))
        except ValueError:
            kind = type(getattr(base, name)).__name__
            raise OptionUnusable(option=change, reason=f"the value is no {kind}") from None
    return replace(base, **given)


def _read(text: str, like: object) -> Any:
    if isinstance(like, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    if isinstance(like, (int, float)):
        return type(like)(text)
    if isinstance(like, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _ratios(given: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise RatioUnusable(ratio=text) from None
        if name not in _RATIOS or not 0 < found[name] < float("inf"):
            raise RatioUnusable(ratio=text)
    return found


def _show(before: Result, after: Result, moved: int, form: str) -> None:
    if form == "json":
        print(json.dumps({"before": _document(before), "after": _document(after), "moved": moved}, indent=2))
        return
    from kilonova.cmd import screens

    rows = [
        (name.replace("_", " "), _worded(value), _worded(_document(after)[name]))
        for name, value in _document(before).items() if name != "failures"
    ]  # fmt: skip
    for culprit in sorted({*before.failures, *after.failures}):
        rows.append((f"no host: {culprit}", str(before.failures[culprit]), str(after.failures[culprit])))
    screens.comparison(("", "As configured", "Changed"), rows)
    print("1 server is on another host." if moved == 1 else f"{moved} servers are on another host.")


def _document(result: Result) -> dict[str, Any]:
    return {
        "servers": result.servers, "placed": result.placed, "failed": result.servers - result.placed,
        "hosts": result.hosts, "hosts_used": result.hosts_used, "packing": round(result.packing, 4),
        "spread": round(result.spread, 4), "fullest": round(result.fullest, 4), "failures": dict(result.failures),
    }  # fmt: skip


def _worded(value: int | float) -> str:
    return f"{value:.1%}" if isinstance(value, float) else str(value)
