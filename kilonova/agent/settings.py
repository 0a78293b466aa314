"""What an agent reads from the configuration: Nova's option names, so that an operator's file means the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kilonova.core.pci.devices import DeviceSpec, parse_specs

_COMPUTE: Final = (
    "image_type_exclude_list", "cpu_shared_set", "cpu_dedicated_set", "packing_host_numa_cells_allocation_strategy",
)  # fmt: skip

@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Intervals in seconds; memory and disk in MiB. A ratio of None leaves it to placement or the initial one."""

    report_interval: float = 10
    update_resources_interval: int = 0
    periodic_enable: bool = True
    max_concurrent_builds: int = 10
    reserved_host_memory_mb: int = 512
    reserved_host_disk_mb: int = 0
    reserved_host_cpus: int = 0
    cpu_allocation_ratio: float | None = None
    ram_allocation_ratio: float | None = None
    disk_allocation_ratio: float | None = None
    initial_cpu_allocation_ratio: float = 4.0
    initial_ram_allocation_ratio: float = 1.0
    initial_disk_allocation_ratio: float = 1.0
    image_type_exclude_list: tuple[str, ...] = ()
    cpu_shared_set: str | None = None
    cpu_dedicated_set: str | None = None
    packing_host_numa_cells_allocation_strategy: bool = False
    reserved_huge_pages: tuple[Mapping[str, str], ...] = ()
    device_spec: tuple[DeviceSpec, ...] = ()
    report_in_placement: bool = False

    @classmethod
    def from_conf(cls, conf: Any) -> AgentSettings:
        """From the options of the same names in `[DEFAULT]`, `[compute]` and `[pci]`. A ratio of 0 means unset, as in
        Nova. DeviceSpecInvalid.
        """
        elsewhere = {*_COMPUTE, "device_spec", "report_in_placement"}
        values = {name: getattr(conf, name) for name in cls.__dataclass_fields__ if name not in elsewhere}
        values |= {name: getattr(conf.compute, name) for name in _COMPUTE}
        values["image_type_exclude_list"] = tuple(conf.compute.image_type_exclude_list)
        values["reserved_huge_pages"] = tuple(conf.reserved_huge_pages or ())
        values["device_spec"] = parse_specs(conf.pci.device_spec)
        values["report_in_placement"] = conf.pci.report_in_placement
        for name in ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"):
            values[name] = values[name] or None
        return cls(**values)
