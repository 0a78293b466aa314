"""`[DEFAULT]`: everything that belongs to no group of its own. `load` fills in what depends on the host."""

from __future__ import annotations

from oslo_config import cfg, types

STATE_PATH = cfg.StrOpt(
    "state_path", default="/var/lib/kilonova",
    help="Directory for what a process keeps on this host: SQLite files, guests of simulated hypervisors.",
)

OPTS = (
    STATE_PATH,
    cfg.HostDomainOpt(
        "host", sample_default="<this host's name>",
        help="Name of this host in the services table; agents of several simulated hosts append a number.",
    ),
    cfg.StrOpt("my_ip", help="Address of this host on the management network."),
    cfg.StrOpt(
        "internal_service_availability_zone", default="internal",
        help="Zone in which services other than hosts are listed.",
    ),
    cfg.StrOpt("default_availability_zone", default="nova", help="Zone of a host that is in no aggregate with a zone."),
    cfg.BoolOpt(
        "restrict_zones", default=False,
        help="Keep projects to the zones that their attribute compute_zones names (RestrictedZoneFilter).",
    ),
    cfg.StrOpt(
        "default_schedule_zone",
        help="Zone a server goes to when the request names none; unset lets it go anywhere.",
    ),
    cfg.IntOpt("password_length", default=12, min=0, help="Letters and digits of a generated administrator password."),
    cfg.StrOpt(
        "instance_name_template", default="instance-%08x",
        help="Name of the guest at the hypervisor; %08x takes the number, %(uuid)s the id.",
    ),
    cfg.IntOpt(
        "max_local_block_devices", default=3,
        help="Local disks a request may ask for; 0 allows volumes only, -1 any number.",
    ),
    cfg.IntOpt(
        "reclaim_instance_interval", default=0, help="Seconds a soft-deleted server is kept; 0 deletes at once.",
    ),
    cfg.IntOpt(
        "vif_plugging_timeout", default=300, min=0, help="Seconds to wait for network-vif-plugged; 0 does not wait.",
    ),
    cfg.BoolOpt("vif_plugging_is_fatal", default=True, help="Whether a missing network-vif-plugged fails the build."),
    cfg.IntOpt("arq_binding_timeout", default=300, min=1, help="Seconds to wait until accelerators are bound."),
    cfg.IntOpt("network_allocate_retries", default=0, min=0, help="Further tries to make ports for a server."),
    cfg.IntOpt(
        "block_device_allocate_retries", default=60, min=0,
        help="How many times to look whether a new volume is available.",
    ),
    cfg.IntOpt(
        "block_device_allocate_retries_interval", default=3, min=0, help="Seconds between looks at a new volume.",
    ),
    cfg.IntOpt("max_concurrent_builds", default=10, min=0, help="Builds an agent runs at once; 0 is no limit."),
    cfg.IntOpt("reserved_host_memory_mb", default=512, min=0, help="MiB of memory kept for the host."),
    cfg.IntOpt("reserved_host_disk_mb", default=0, min=0, help="MiB of disk kept for the host."),
    cfg.MultiOpt(
        "reserved_huge_pages", item_type=types.Dict(),
        help="Memory pages kept for the host, as node:number,size:KiB,count:pages.",
    ),
    cfg.IntOpt("reserved_host_cpus", default=0, min=0, help="CPUs kept for the host."),
    cfg.FloatOpt(
        "cpu_allocation_ratio", min=0.0,
        help="Virtual CPUs offered per physical one; unset or 0 leaves what placement has.",
    ),
    cfg.FloatOpt(
        "ram_allocation_ratio", min=0.0, help="Memory offered per physical; unset or 0 leaves what placement has.",
    ),
    cfg.FloatOpt(
        "disk_allocation_ratio", min=0.0, help="Disk offered per physical; unset or 0 leaves what placement has.",
    ),
    cfg.FloatOpt(
        "initial_cpu_allocation_ratio", default=4.0, min=0.0,
        help="cpu_allocation_ratio of a new provider where that is unset.",
    ),
    cfg.FloatOpt(
        "initial_ram_allocation_ratio", default=1.0, min=0.0,
        help="ram_allocation_ratio of a new provider where that is unset.",
    ),
    cfg.FloatOpt(
        "initial_disk_allocation_ratio", default=1.0, min=0.0,
        help="disk_allocation_ratio of a new provider where that is unset.",
    ),
    cfg.IntOpt("report_interval", default=10, help="Seconds between heart-beats of a service."),
    cfg.IntOpt("service_down_time", default=60, help="Seconds without a heart-beat after which a service is down."),
    cfg.BoolOpt("enable_new_services", default=True, help="Whether a new compute service starts enabled."),
    cfg.IntOpt("long_rpc_timeout", default=1800, help="Seconds to wait for calls that move data."),
    cfg.IntOpt(
        "update_resources_interval", default=0, help="Seconds between looks at the inventory; 0 is 60, -1 never.",
    ),
    cfg.BoolOpt("periodic_enable", default=True, help="Run periodic tasks."),
    cfg.StrOpt(
        "transport_url", secret=True,
        help="Message broker, as oslo.messaging writes it; unset is the bus inside this process.",
    ),
    cfg.IntOpt("rpc_response_timeout", default=60, min=1, help="Seconds to wait for an answer over the bus."),
)
