"""Topologies as JSON text: in rows, reports and messages. CPU sets are written `0-3,8`; what is empty is left out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kilonova.core import json
from kilonova.core.numa.cpus import members, of, parse, text
from kilonova.core.numa.topology import GuestCell, GuestTopology, HostCell, HostTopology, Pages


def host_text(host: HostTopology) -> str:
    """The text of a host's topology; equal topologies have equal texts."""
    return json.dump_str({"cells": [_host_cell(cell) for cell in host.cells]})


@lru_cache(maxsize=4096)
def read_host(data: str) -> HostTopology:
    """The topology of a text of `host_text`. Hosts of one kind and filling share a text, so it is remembered."""
    return HostTopology(tuple(
        HostCell(
            row["id"], _mask(row, "cpuset"), _mask(row, "pcpuset"), row["memory_mb"],
            row.get("cpu_usage", 0), row.get("memory_usage", 0), _mask(row, "pinned"),
            _cores(tuple(row.get("siblings", ()))),
            tuple(Pages(*pages) for pages in row.get("pages", ())),
            row.get("socket"), tuple(row.get("physnets", ())), row.get("tunneled", False),
        )
        for row in json.loads(data)["cells"]
    ))  # fmt: skip


@lru_cache(maxsize=256)
def _cores(texts: tuple[str, ...]) -> tuple[int, ...]:
    """The cores of a cell; one value for all hosts of a kind."""
    return tuple(parse(core) for core in texts)


def guest_text(guest: GuestTopology) -> str:
    """The text of a guest's topology, fitted or not."""
    return json.dump_str(_lean({
        "cells": [_guest_cell(cell) for cell in guest.cells], "cpu_policy": guest.cpu_policy,
        "thread_policy": guest.thread_policy, "emulator_threads": guest.emulator_threads,
    }))  # fmt: skip


def read_guest(data: str) -> GuestTopology:
    """The topology of a text of `guest_text`."""
    document = json.loads(data)
    return GuestTopology(
        tuple(_read_guest_cell(row) for row in document["cells"]), document.get("cpu_policy", "shared"),
        document.get("thread_policy"), document.get("emulator_threads"),
    )  # fmt: skip


def _host_cell(cell: HostCell) -> dict[str, Any]:
    return _lean({
        "id": cell.id, "cpuset": text(cell.cpuset), "pcpuset": text(cell.pcpuset), "memory_mb": cell.memory_mb,
        "cpu_usage": cell.cpu_usage, "memory_usage": cell.memory_usage, "pinned": text(cell.pinned),
        "siblings": [text(core) for core in cell.siblings],
        "pages": [[row.size_kb, row.total, row.used, row.reserved] for row in cell.pages],
        "socket": cell.socket, "physnets": list(cell.physnets), "tunneled": cell.tunneled,
    })  # fmt: skip


def _guest_cell(cell: GuestCell) -> dict[str, Any]:
    return _lean({
        "id": cell.id, "cpuset": text(cell.cpuset), "pcpuset": text(cell.pcpuset), "memory_mb": cell.memory_mb,
        "page_size": cell.page_size, "host_cell": cell.host_cell, "pinning": [list(pair) for pair in cell.pinning],
        "emulator": text(cell.emulator), "siblings": [members(core) for core in cell.siblings],
    })  # fmt: skip


def _read_guest_cell(row: dict[str, Any]) -> GuestCell:
    return GuestCell(
        row["id"], _mask(row, "cpuset"), _mask(row, "pcpuset"), row["memory_mb"],
        row.get("page_size"), row.get("host_cell"), tuple((pair[0], pair[1]) for pair in row.get("pinning", ())),
        _mask(row, "emulator"), tuple(of(core) for core in row.get("siblings", ())),
    )  # fmt: skip


def _mask(row: dict[str, Any], key: str) -> int:
    """The mask under a key, which is left out when it is empty."""
    return parse(row[key]) if key in row else 0


_KEPT = frozenset({"id", "memory_mb", "host_cell", "socket"})  # a zero of these says something


def _lean(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value or (key in _KEPT and value is not None)}
