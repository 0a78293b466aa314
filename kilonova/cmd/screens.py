"""A decision and a capacity on one screen, from the documents of the scheduler's API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote_plus

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

Doc = dict[str, Any]

RANKED: Final = 5
_PIPED: Final = 140  # columns where there is no terminal
_COLOURS: Final = {"placed": "green", "no_valid_host": "red", "failed": "red"}


def decision(doc: Doc) -> None:
    """Print the whole story of a decision."""
    console = _console()
    console.print(_title(doc))
    stages = Table.grid(padding=(0, 2, 0, 0))
    for number in range(4):
        stages.add_column(justify="left" if number % 2 else "right", vertical="top")
    for stage in doc["stages"]:
        spent = stage["milliseconds"]
        timing = "" if spent is None else f"{spent:.1f} ms"
        stages.add_row(str(stage["number"]), Text(stage["name"], "bold"), timing, Group(*_STAGES[stage["name"]](stage)))
    console.print(stages)
    for line in _verdict(doc):
        console.print(line)


def capacity(doc: Doc) -> None:
    """Print how many more fit."""
    console = _console()
    limits = ", ".join(f"{row['name']} on {_count(row['hosts'], 'host')}" for row in doc["limits"])
    console.print(Text.assemble((f"{doc['fits']} more fit", "bold"), f" on {_count(doc['hosts'], 'host')}."))
    if doc.get("explanation"):
        console.print(Text(doc["explanation"]))
    if limits:
        console.print(Text(f"Runs out first: {limits}."))
    for kind, rows in (("Zone", doc["zones"]), ("Aggregate", doc["aggregates"])):
        if rows:
            console.print(_table((kind, "Fits", "Hosts", "Runs out first"),
                [(row["name"], row["fits"], row["hosts"], row["runs_out_first"]) for row in rows]))  # fmt: skip


def comparison(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table of numbers side by side."""
    _console().print(_table(head, rows))


def _console() -> Console:
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPED)


def _title(doc: Doc) -> Text:
    number = f"Decision {doc['id']}" if "id" in doc else "Simulation"
    of_what = " ".join(filter(None, (_count(doc["server_count"], "server"), f"of {doc['flavor']}" if doc["flavor"] else
                                     "", f"from {doc['image']}" if doc["image"] else "")))  # fmt: skip
    who = f", by {doc['scheduler']}" if doc["scheduler"] else ""
    return Text.assemble(
        (number, "bold"), f" at {doc['at']}{who}: {of_what}, ", (doc["outcome"], _COLOURS.get(doc["outcome"], "")),
        f" in {doc['milliseconds']:.1f} ms\n", (f"{doc['request_id'] or ''}  project {doc['project_id']}", "dim"),
    )  # fmt: skip


def _verdict(doc: Doc) -> Iterator[RenderableType]:
    why = next((stage["why"] for stage in doc["stages"] if stage["name"] == "weighers"), None)
    if why:
        yield Text.assemble(("Why: ", "bold"), why)
    if doc["outcome"] != "placed":
        yield Text.assemble(("Why not: ", "bold red"), doc["explanation"] or doc["failure"] or "")
    if "fate" in doc:
        fate = doc["fate"]
        yield Text.assemble((f"Host {fate['host']}: ", "bold"), f"{fate['what']}. {fate['text']}")
    if doc.get("older"):
        yield Text(f"Older decisions about it: {', '.join(map(str, doc['older']))}", "dim")


def _request(stage: Doc) -> Iterator[RenderableType]:
    spec = stage["spec"]
    if spec is None:
        yield Text("was too large to be kept")
        return
    flavor = spec["flavor"]
    parts = [f"{flavor['name']}: {flavor['vcpus']} VCPU, {flavor['memory_mb']} MB, {flavor['root_gb']} GB"]
    parts += [f"{key}={value}" for key, value in flavor.get("extra_specs", {}).items()]
    if spec.get("availability_zone"):
        parts.append(f"zone {spec['availability_zone']}")
    parts += [f"{name.replace('_', ' ')} {', '.join(spec[name])}" for name in
              ("force_hosts", "force_nodes", "ignore_hosts") if spec.get(name)]  # fmt: skip
    if spec.get("group"):
        parts.append(f"group {spec['group']['uuid']} ({spec['group']['policy']})")
    parts += [f"hint {key}={','.join(values)}" for key, values in spec.get("scheduler_hints", {}).items()]
    yield Text("; ".join(parts))


def _added(stage: Doc) -> Iterator[RenderableType]:
    for row in stage["added"]:
        yield Text(f"{row['name']} added {row['text'] or 'nothing'}")


def _query(stage: Doc) -> Iterator[RenderableType]:
    yield Text(unquote_plus(stage["query"].replace("&", "  ")) or "was not reached")


def _candidates(stage: Doc) -> Iterator[RenderableType]:
    yield Text(_count(stage["candidates"], "allocation candidate"))
    if stage["shortage"]:
        yield from _filter(stage["shortage"])


def _hosts(stage: Doc) -> Iterator[RenderableType]:
    yield Text(_count(stage["hosts"], "host"))


def _filters(stage: Doc) -> Iterator[RenderableType]:
    for row in stage["rounds"]:
        if len(stage["rounds"]) > 1:
            yield Text(f"for server {row['server']}", "dim")
        for each in row["filters"]:
            yield from _filter(each)


def _filter(row: Doc) -> Iterator[RenderableType]:
    fell = row["before"] - row["after"]
    style = "bold red" if row["before"] and not row["after"] else "yellow" if fell else ""
    yield Text.assemble((f"{row['name']}: {row['before']} → {row['after']}", style), f", {fell} fell" if fell else "")
    for reason in row["reasons"]:
        yield Text(f"  {_count(reason['hosts'], 'host')}: {reason['text']}")


def _weighers(stage: Doc) -> Iterator[RenderableType]:
    ranking = stage["ranking"]
    if not ranking:
        yield Text("none was reached")
        return
    names = [name for name in ranking[0]["shares"] if any(row["shares"][name] for row in ranking)]
    rows = [(row["host"], f"{row['total']:.3f}", *(f"{row['shares'][name]:+.3f}" for name in names))
            for row in ranking[:RANKED]]  # fmt: skip
    yield _table(("Host", "Weight", *(name.removesuffix("Weigher") for name in names)), rows)
    if len(ranking) > RANKED:
        yield Text(f"and {len(ranking) - RANKED} more")


def _claim(stage: Doc) -> Iterator[RenderableType]:
    tries, shown = stage["tries"], 5
    for row in tries[:shown]:
        yield Text(f"{row['host']} for {row['server']}: {'taken' if row['taken'] else 'refused'}")
    if stage["try_count"] > shown:
        yield Text(f"and {stage['try_count'] - shown} more claims")
    if stage["winners"]:
        hosts = list(dict.fromkeys(stage["winners"].values()))
        yield Text.assemble("winner ", (_names(hosts), "bold green"))
    if stage["alternates"]:
        yield Text(f"alternates {_names(stage['alternates'])}")


_STAGES = {
    "request": _request, "request filters": _added, "query": _query, "candidates": _candidates, "host states": _hosts,
    "filters": _filters, "weighers": _weighers, "claim": _claim,
}  # fmt: skip


def _names(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*map(str, row))
    return table


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
