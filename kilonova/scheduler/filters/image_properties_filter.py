"""ImagePropertiesFilter: the host can run what the image is made for.

Architecture, hypervisor type and machine mode, as far as the image sets them, must occur together in one of the
host's triples; the hypervisor's version must satisfy the image's predicate; the address width must not be too large.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_ARCHITECTURES = {"i386": "i686", "i486": "i686", "i586": "i686", "x86_32": "i686", "x86_32p": "i686",
                  "amd64": "x86_64"}  # fmt: skip
_HYPERVISORS = {"xapi": "xen"}
_MODES = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}
_PART = re.compile(r"^\s*(<=|>=|==|!=|<|>)\s*([0-9]+(?:\.[0-9]+)*)\s*$")
Version = tuple[int, ...]
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _prepare(request: Request) -> Check | None:
    checks: list[Check] = []
    architecture = _canonical(request.image_property("hw_architecture"), _ARCHITECTURES)
    if architecture is None:
        architecture = request.settings.image_properties_default_architecture
    wanted = (
        architecture,
        _canonical(request.image_property("img_hv_type"), _HYPERVISORS),
        _canonical(request.image_property("hw_vm_mode"), _MODES),
    )
    if any(wanted):
        checks.append(partial(_triple, wanted))
    predicate = request.image_property("img_hv_requested_version")
    if predicate:
        checks.append(partial(_version, str(predicate), _predicate(str(predicate))))
    bits = request.image_property("hw_maxphysaddr_bits")
    if bits is not None and str(bits).isdigit():
        checks.append(partial(_address_width, int(bits)))
    if not checks:
        return None
    return lambda state: next((verdict for check in checks if not (verdict := check(state)).passed), PASS)


def _canonical(value: Any, aliases: dict[str, str]) -> str | None:
    if not value:
        return None
    text = str(value).lower()
    return aliases.get(text, text)


def _triple(wanted: tuple[str | None, str | None, str | None], state: HostState) -> Verdict:
    for offered in state.row.supported_instances:
        if all(want is None or want == have for want, have in zip(wanted, offered, strict=False)):
            return PASS
    named = ", ".join(want for want in wanted if want)
    return fail("none of the {} kinds of guest it runs is {}", len(state.row.supported_instances), named)


def _predicate(text: str) -> list[tuple[Callable[[Version, Version], bool], Version]] | None:
    """The parts of `>=2.6,<4`; None when it is not a predicate."""
    parts = [_PART.match(part) for part in text.split(",")]
    if not all(parts):
        return None
    return [(_COMPARE[part[1]], _numbers(part[2])) for part in parts if part]


def _numbers(text: str) -> Version:
    return (*(int(part) for part in text.split(".")), 0, 0)[:3]


def _version(
    text: str, predicate: list[tuple[Callable[[Version, Version], bool], Version]] | None, state: HostState
) -> Verdict:
    if predicate is None:
        return fail("the image's {} is not a version predicate", text)
    number = state.row.hypervisor_version
    version = (number // 1_000_000, number // 1000 % 1000, number % 1000)
    if all(compare(version, wanted) for compare, wanted in predicate):
        return PASS
    return fail("its hypervisor's version is {}.{}.{}, wanted {}", *version, text)


def _address_width(bits: int, state: HostState) -> Verdict:
    known = state.row.cpu_info.get("maxphysaddr", {}) if isinstance(state.row.cpu_info, dict) else {}
    has = known.get("bits") if isinstance(known, dict) else None
    if not str(has).isdigit() or bits <= int(str(has)):
        return PASS
    return fail("its physical addresses have {} bits, wanted {}", has, bits)


FILTER = Filter("ImagePropertiesFilter", _prepare, on_rebuild=True)
