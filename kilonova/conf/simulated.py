"""`[simulated]`: the hypervisors of the simulated driver. The group is ours; Nova has none like it."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt("hosts", default=1, min=1, help="Simulated hypervisors in one agent process."),
    cfg.StrOpt("host_prefix", default="sim-", help="Beginning of their names; a number of four digits follows."),
    cfg.IntOpt("vcpus", default=32, min=1, help="CPUs of each."),
    cfg.IntOpt("memory_mb", default=196608, min=1, help="MiB of memory of each."),
    cfg.IntOpt("local_gb", default=4096, min=1, help="GiB of disk of each."),
    cfg.IntOpt("numa_cells", default=0, min=0, max=64, help="NUMA nodes of each; 0 tells of none."),
    cfg.IntOpt("cpu_sockets", default=0, min=0, help="Sockets of each, when it has nodes; 0 is one a node."),
    cfg.IntOpt("cpu_threads", default=1, min=1, help="Threads of each core, when it has nodes."),
    cfg.ListOpt("hugepages", default=[], help="Huge pages of each node, as KiB:number."),
    cfg.ListOpt(
        "pci_devices", default=[],
        help="PCI cards of each, as preset:number: gpu (10de:20b5), nvme (144d:a80a), nic (8086:1572 with four virtual "
        "functions 8086:154c). Guests get those that [pci] device_spec offers.",
    ),
    cfg.FloatOpt("spawn_delay", default=0.0, min=0.0, help="Seconds that making a guest takes."),
    cfg.FloatOpt("destroy_delay", default=0.0, min=0.0, help="Seconds that removing a guest takes."),
    cfg.FloatOpt("power_delay", default=0.0, min=0.0, help="Seconds that a change of power state takes."),
    cfg.FloatOpt("disk_delay", default=0.0, min=0.0, help="Seconds that attaching or detaching a disk takes."),
    cfg.ListOpt(
        "faults", default=[],
        help="Calls that fail: verb@N, verb@N-M or verb@N:host, with ! at the end when no other host should be tried; "
        "verbs are spawn, destroy, power, disk, vif, console.",
    ),
)  # fmt: skip
