"""What the use cases read of the configuration, taken once at start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kilonova.core import liveness
from kilonova.core.pci.requests import Alias, parse_aliases

QUOTA_RESOURCES = (
    "instances", "cores", "ram", "metadata_items", "injected_files", "injected_file_content_bytes",
    "injected_file_path_length", "key_pairs", "server_groups", "server_group_members",
)  # fmt: skip

_QUOTAS: dict[str, int] = dict(zip(QUOTA_RESOURCES, (10, 20, 51200, 128, 5, 10240, 255, 100, 10, 10), strict=True))


@dataclass(frozen=True, slots=True)
class ComputeSettings:
    """Options of Nova's names; ram in MiB, times in seconds. quotas: the default limit by option name, -1 for none."""

    quotas: dict[str, int] = field(default_factory=lambda: dict(_QUOTAS))
    max_limit: int = 1000
    enable_instance_password: bool = True
    password_length: int = 12
    default_schedule_zone: str | None = None
    default_availability_zone: str = "nova"
    internal_service_availability_zone: str = "internal"
    compute_link_prefix: str | None = None
    glance_link_prefix: str | None = None
    reclaim_instance_interval: int = 0
    max_local_block_devices: int = 3
    vif_plugging_timeout: int = 300
    vif_plugging_is_fatal: bool = True
    arq_binding_timeout: int = 300
    block_device_allocate_retries: int = 60
    block_device_allocate_retries_interval: int = 3
    network_allocate_retries: int = 0
    instance_name_template: str = "instance-%08x"
    service_down_time: float = 60  # as `core.liveness.down_after` has it
    cross_az_attach: bool = True
    max_attempts: int = 3
    restrict_zones: bool = False
    pci_aliases: Mapping[str, Alias] = field(default_factory=dict)


def from_conf(conf: Any) -> ComputeSettings:
    """The settings of a loaded configuration (`conf.load`). AliasInvalid."""
    return ComputeSettings(
        quotas={name: getattr(conf.quota, name) for name in QUOTA_RESOURCES},
        max_limit=conf.api.max_limit,
        enable_instance_password=conf.api.enable_instance_password,
        password_length=conf.password_length,
        default_schedule_zone=conf.default_schedule_zone,
        default_availability_zone=conf.default_availability_zone,
        internal_service_availability_zone=conf.internal_service_availability_zone,
        compute_link_prefix=conf.api.compute_link_prefix,
        glance_link_prefix=conf.api.glance_link_prefix,
        reclaim_instance_interval=conf.reclaim_instance_interval,
        max_local_block_devices=conf.max_local_block_devices,
        vif_plugging_timeout=conf.vif_plugging_timeout,
        vif_plugging_is_fatal=conf.vif_plugging_is_fatal,
        arq_binding_timeout=conf.arq_binding_timeout,
        block_device_allocate_retries=conf.block_device_allocate_retries,
        block_device_allocate_retries_interval=conf.block_device_allocate_retries_interval,
        network_allocate_retries=conf.network_allocate_retries,
        instance_name_template=conf.instance_name_template,
        service_down_time=liveness.down_after(conf.report_interval, conf.service_down_time),
        cross_az_attach=conf.cinder.cross_az_attach,
        max_attempts=conf.scheduler.max_attempts,
        restrict_zones=conf.restrict_zones,
        pci_aliases=parse_aliases(conf.pci.alias),
    )
