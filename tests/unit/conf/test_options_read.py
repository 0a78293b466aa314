"""An option that is declared is read by something; Nova's others parse and warn (kilonova.conf.load)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import kilonova
from kilonova.conf.load import APPLICATIONS

PACKAGE = Path(kilonova.__file__).parent

# This list may only shrink: each entry is a promise to an operator that is not kept yet.
_UNREAD: dict[str, tuple[str, ...]] = {
    "DEFAULT": (
        "allow_resize_to_same_host", "cell_worker_thread_pool_size", "compute_driver",
        "default_access_ip_network_name", "default_thread_pool_size", "flat_injected", "force_config_drive",
        "instance_build_timeout", "instance_delete_interval", "long_rpc_timeout",
        "max_concurrent_live_migrations", "max_concurrent_snapshots", "maximum_instance_delete_attempts",
        "migrate_max_retries", "non_inheritable_image_properties", "osapi_compute_unique_server_name_scope",
        "resize_confirm_window", "resume_guests_state_on_host_boot", "rpc_response_timeout",
        "running_deleted_instance_action", "running_deleted_instance_poll_interval",
        "running_deleted_instance_timeout", "scheduler_instance_sync_interval", "shelved_offload_time",
        "shutdown_timeout", "state_path", "sync_power_state_interval",
    ),
    "api": (
        "config_drive_skip_versions", "dhcp_domain", "instance_list_per_project_cells",
        "list_records_by_skipping_down_cells", "metadata_cache_expiration", "use_neutron_default_nets",
        "vendordata_jsonfile_path", "vendordata_providers",
    ),
    "api_database": (
        "max_pool_size",
    ),
    "compute": (
        "consecutive_build_service_disable_threshold", "cpu_dedicated_set", "cpu_shared_set",
        "max_disk_devices_to_attach", "resource_provider_association_refresh",
    ),
    "conductor": (
        "workers",
    ),
    "database": (
        "max_pool_size",
    ),
    "filter_scheduler": (
        "aggregate_image_properties_isolation_namespace", "aggregate_image_properties_isolation_separator",
        "available_filters", "image_props_weight_multiplier", "image_props_weight_setting", "isolated_hosts",
        "isolated_images", "max_instances_per_host", "max_io_ops_per_host", "pci_weight_multiplier",
        "restrict_isolated_hosts_to_isolated_images", "track_instance_changes",
    ),
    "neutron": (
        "default_floating_pool", "extension_sync_interval", "metadata_proxy_shared_secret",
        "service_metadata_proxy",
    ),
    "placement": (
        "allocation_candidates_generation_strategy",
    ),
    "placement_database": (
        "max_pool_size",
    ),
    "quota": (
        "count_usage_from_placement", "recheck_quota",
    ),
    "scheduler": (
        "query_placement_for_routed_network_aggregates", "workers",
    ),
}
UNREAD = frozenset((group, name) for group, names in _UNREAD.items() for name in names)


READ_WHOLE = {"cors"}  # handed to oslo.middleware as a whole (kilonova.http.middleware)


@cache
def words() -> frozenset[str]:
    """Every attribute name and every quoted name in the package outside the rows themselves."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name == "conf" and path.name not in ("load.py",):
            continue
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(r"\.([a-z][a-z0-9_]*)\b", text))
        found.update(re.findall(r"[\"']([a-z][a-z0-9_]*)[\"']", text))
        if path.name == "settings.py":
            found.update(re.findall(r"^\s+([a-z][a-z0-9_]*): ", text, re.M))
    return frozenset(found)


def unread() -> set[tuple[str, str]]:
    return {
        (group, option.dest)
        for rows in APPLICATIONS.values()
        for group, options in rows.items()
        for option in options
        if option.dest not in words() and group not in READ_WHOLE
    }


def test_nothing_is_declared_that_nobody_reads() -> None:
    assert unread() - UNREAD == set()


def test_the_list_of_unread_options_has_no_entry_that_is_read() -> None:
    assert UNREAD - unread() == set()
