"""Writes docs/reference/ from the declared rows: operations, states, configuration, policies, calls, metrics.

    python -m tools.reference

A test says when a page is not what the rows say any more.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kilonova.api.scheduler import app as scheduler_api
from kilonova.api.scheduler import policy as scheduler_policy
from kilonova.bus import calls
from kilonova.bus.calls import Call
from kilonova.compute.actions import ACTIONS, ANY, NONE, Action
from kilonova.conf.load import APPLICATIONS
from kilonova.core import states
from kilonova.core.metrics import Metric
from kilonova.http.op import Op
from kilonova.http.policy import Rule, compute_rules
from kilonova.http.versions import ALWAYS, Since, show
from kilonova.placement.app import OPS
from kilonova.placement.policy import rules as placement_rules
from kilonova.wiring.metrics import TABLES

FOLDER = Path(__file__).parents[1] / "docs/reference"
NOTICE = "<!-- Made by `make docs` from the declared rows. Changes made here are lost. -->"

SERVICES = (
    ("Compute", "/compute/v2.1", "kilonova.api.compute.rows"),
    ("Placement", "/placement", "kilonova.placement.app"),
    ("Scheduler", "/scheduler", "kilonova.api.scheduler.app"),
    ("Identity (embedded)", "/identity", "kilonova.embedded.identity.app"),
    ("Images (embedded)", "/image", "kilonova.embedded.images.app"),
    ("Network (embedded)", "/networking", "kilonova.embedded.network.app"),
    ("Volumes (embedded)", "/volume", "kilonova.embedded.volumes.app"),
)
"""Title, prefix under the cloud's address, module that has all rows in OPS and what is left out in NOT_SERVED."""

Row = Iterable[object]


def pages() -> dict[str, str]:
    """File name to text of every page."""
    made: dict[str, Callable[[], Iterator[str]]] = {
        "operations.md": operations,
        "states.md": server_states,
        "configuration.md": configuration,
        "policies.md": policies,
        "calls.md": messages,
        "metrics.md": numbers,
    }
    return {name: "\n".join((NOTICE, "", *make())).rstrip() + "\n" for name, make in made.items()}


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


# -- operations ------------------------------------------------------------------------------------------------------


def operations() -> Iterator[str]:
    """What every service serves, and what the embedded ones do not."""
    yield "# Operations"
    yield ""
    yield "What is served, by service. Versions: nothing means all. Errors: besides those that every operation may"
    yield "answer (400, 401, 403, 404, 406, 413, 415, 501). Rule: the policy that is checked before anything is done."
    for title, prefix, module in SERVICES:
        rows = sorted(rows_of(module), key=lambda op: (op.path, op.action or "", _METHODS.index(op.method)))
        yield from ("", f"## {title}", "", f"Under `{prefix}`; {len(rows)} operations.", "")
        yield from table(("Operation", "Versions", "Success", "Errors", "Rule"), map(_operation, rows))
        left_out = not_served(module)
        yield from ("", "Not served:", "", *(f"- `{what}`: {why}." for what, why in left_out)) if left_out else ()


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def rows_of(module: str) -> list[Op]:
    """The operations of a service, without those that only say that they are not served.

    The empty path is the path `/` without its slash; the project in the path (`{_project}`) says nothing new.
    """
    refused = {what for what, _ in not_served(module)}
    rows = importlib.import_module(module).OPS
    return [
        op
        for op in rows
        if op.path
        and "{_project}" not in op.path
        and op.action not in refused
        and not any(op.path == path or op.path.startswith(f"{path}/") for path in refused)
    ]


def not_served(module: str) -> list[tuple[str, str]]:
    """What a service says of paths and actions that it leaves out, with the reason."""
    loaded = importlib.import_module(module)
    return [*getattr(loaded, "NOT_SERVED", ()), *getattr(loaded, "NOT_SERVED_ACTIONS", ())]


def _operation(op: Op) -> Row:
    action = f" `{op.action}`" if op.action else ""
    return (
        f"`{op.method} {op.path}`{action}",
        "" if op.range == ALWAYS else str(op.range),
        changing(op.ok, str),
        changing(op.errors, lambda errors: ", ".join(map(str, errors))),
        f"`{op.policy}`" if op.policy else ("" if op.auth else "open to everybody"),
    )


def changing(value: Any, text: Callable[[Any], str]) -> str:
    """A value, or what it changes to at which version."""
    if not isinstance(value, Since):
        return text(value)
    return "; ".join((text(value.default), *(f"from {show(version)} {text(new)}" for version, new in value.changes)))


# -- states ----------------------------------------------------------------------------------------------------------


def server_states() -> Iterator[str]:
    """Statuses, and what may be done in which state."""
    yield "# States of a server"
    yield ""
    yield "## Status"
    yield ""
    yield "What the API shows, by vm_state, and by task_state where it makes a difference."
    yield ""
    yield from table(
        ("vm_state", "Status", "With a task_state"),
        (
            (f"`{name}`", status, "; ".join(f"{shown}: {', '.join(tasks)}" for shown, tasks in grouped(more).items()))
            for name, (status, more) in states.STATUS.items()
        ),
    )
    names = list(states.STATUS)
    yield from ("", "## Actions", "", "● allowed in that vm_state.", "")
    allowed = {row.name: names if row.vm_states == ANY else row.vm_states for row in ACTIONS}
    yield from table(
        ("Action", *names),
        ((f"`{action}`", *("●" if name in places else "" for name in names)) for action, places in allowed.items()),
    )
    yield from ("", "## What an action asks and does", "")
    head = ("Action", "task_state before", "Also asked", "task_state set", "Then", "Instance action")
    yield from table(head, map(_action, ACTIONS))


def _action(row: Action) -> Row:
    asked = {"has been active once": row.launched, "not locked": row.lock, "on a host": row.host}
    words = {ANY: "any", NONE: "none"}
    before = words[row.tasks] if isinstance(row.tasks, str) else ", ".join(("none", *row.tasks))
    then = f"workflow `{row.follows}`" if row.follows else ""
    also = ", ".join(text for text, wanted in asked.items() if wanted)
    return f"`{row.name}`", before, also, f"`{row.task_state}`" if row.task_state else "", then, f"`{row.action}`"


def grouped(mapping: dict[str, str]) -> dict[str, list[str]]:
    """Value to its keys."""
    found: dict[str, list[str]] = {}
    for key, value in mapping.items():
        found.setdefault(value, []).append(key)
    return found


# -- configuration, policies, calls ----------------------------------------------------------------------------------


def configuration() -> Iterator[str]:
    """Every option that something reads."""
    yield "# Configuration"
    yield ""
    yield "Options of `kilonova.conf`, by group. Names and defaults are Nova's where the meaning is. Options that Nova"
    yield "has and that are not here may stand in the file; they have no effect, and a warning says so. What libraries"
    yield "read (`keystone_authtoken`, `oslo_policy`, and the options of oslo.log) is documented with them."
    for application, groups in APPLICATIONS.items():
        yield from ("", f"## {application.capitalize()}")
        for group, options in groups.items():
            yield from ("", f"### [{group}]", "")
            yield from table(("Option", "Type", "Default", "Meaning"), map(_option, options))


def _option(option: Any) -> Row:
    default = option.sample_default if option.sample_default is not None else option.default
    default = "" if default is None or default == [] else f"`{default}`" if default != "" else "empty"
    kind = str(option.type).split(" object")[0].strip("<").split("(")[0]
    choices = list(getattr(option.type, "choices", None) or ())
    meaning = option.help or ""
    if choices:
        meaning += " One of: " + ", ".join(f"`{choice}`" if choice else "empty" for choice in choices) + "."
    return f"`{option.name}`", kind.lower(), default, meaning


def policies() -> Iterator[str]:
    """Every rule with its default."""
    yield "# Policies"
    yield ""
    yield "Rules and their defaults; a `policy.yaml` overrides them (`[oslo_policy]policy_file`)."
    found: dict[str, tuple[Rule, ...]] = {
        "Compute": compute_rules(), "Placement": placement_rules(OPS),
        "Scheduler": scheduler_policy.rules(scheduler_api.OPS),
    }  # fmt: skip
    for service, rules in found.items():
        yield from ("", f"## {service}", "")
        yield from table(
            ("Rule", "Default", "Scopes", "Operations"),
            (
                (f"`{rule.name}`", f"`{rule.default}`" if rule.default else "everybody", ", ".join(rule.scopes),
                 "<br>".join(f"`{operation}`" for operation in rule.operations))
                for rule in rules
            ),
        )  # fmt: skip


def messages() -> Iterator[str]:
    """Every call with the fields of its messages."""
    yield "# Calls"
    yield ""
    yield "Messages between processes. A call waits for its reply; a cast may be lost or come twice. Fields with a"
    yield "default may be missing: messages grow only by such fields."
    rows = {name: row for name, row in vars(calls).items() if isinstance(row, Call)}
    yield ""
    yield from table(
        ("Call", "Served by", "Kind", "Time-out", "Request", "Reply"),
        (
            (f"`{row.name}`", row.topic, row.kind, row.timeout if row.kind == "call" else "",
             f"`{row.request.__name__}`", f"`{row.reply.__name__}`" if row.reply else "")
            for row in rows.values()
        ),
    )  # fmt: skip
    for struct in {kind: None for row in rows.values() for kind in (row.request, row.reply) if kind}:
        yield from ("", f"## {struct.__name__}", "", " ".join((struct.__doc__ or "").split()), "")
        yield from table(("Field", "Type", "Default"), (_field(field) for field in msgspec.structs.fields(struct)))


def _field(field: msgspec.structs.FieldInfo) -> Row:
    default = "" if field.required else f"`{field.default!r}`"
    if not field.required and field.default is msgspec.NODEFAULT:
        default = f"`{field.default_factory()!r}`" if callable(field.default_factory) else ""
    kind = str(field.type)
    if isinstance(field.type, type) and not getattr(field.type, "__args__", None):
        kind = field.type.__name__
    return f"`{field.name}`", f"`{re.sub(r'typing[.]|kilonova[.][a-z_.]+[.]', '', kind)}`", default


def numbers() -> Iterator[str]:
    """Every metric."""
    yield "# Metrics"
    yield ""
    yield "What `/metrics` tells, in Prometheus' format. [What to watch](../operate/metrics.md)."
    for title, rows in TABLES.items():
        yield from ("", f"## {title}", "")
        yield from table(("Metric", "Kind", "Labels", "Meaning"), map(_metric, rows))


def _metric(row: Metric) -> Row:
    return f"`{row.name}`", row.kind, ", ".join(f"`{label}`" for label in row.labels), row.help


def table(head: Iterable[str], rows: Iterable[Row]) -> Iterator[str]:
    """A table in Markdown; bars in cells are escaped."""
    names = tuple(head)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in row) + " |"


if __name__ == "__main__":
    main()
