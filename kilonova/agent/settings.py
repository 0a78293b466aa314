"""What an agent reads from the configuration: Nova's option names, so that an operator's file means the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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

    @classmethod
    def from_conf(cls, conf: Any) -> AgentSettings:
        """From the options of the same names in `[DEFAULT]` and `[compute]`. A ratio of 0 means unset, as in Nova."""
        excluded = tuple(conf.compute.image_type_exclude_list)
        values = {name: getattr(conf, name) for name in cls.__dataclass_fields__ if name != "image_type_exclude_list"}
        values["image_type_exclude_list"] = excluded
        for name in ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"):
            values[name] = values[name] or None
        return cls(**values)
