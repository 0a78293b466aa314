"""What is asked of a world: names that reports use, and the paths behind them."""

from __future__ import annotations

from benchmarks.placement.worlds import NETS, PROJECTS, WIDE_CLASS, World

_SMALL = "resources=VCPU:2,MEMORY_MB:2048,DISK_GB:20"
_PARTS = "resources=DISK_GB:20&resources_C=VCPU:2,MEMORY_MB:2048"


def candidates(world: World) -> dict[str, str]:
    """Queries of allocation candidates by name."""
    queries = _wide() if world.shape == "wide" else _of_hosts(world) | (_flat() if world.shape == "flat" else _nested())
    return {name: f"/allocation_candidates?{query}" for name, query in queries.items()}


def _of_hosts(world: World) -> dict[str, str]:
    zones = world.zones
    mixed = "required=in:CUSTOM_BENCH_T03,CUSTOM_BENCH_T04&required=HW_CPU_X86_AVX2,!COMPUTE_STATUS_DISABLED"
    return {
        "simple, limit 10": f"{_SMALL}&limit=10",
        "simple, limit 1000": f"{_SMALL}&limit=1000",
        "simple, no limit": _SMALL,
        "2 traits, member_of": f"{_SMALL}&required=HW_CPU_X86_AVX2,CUSTOM_BENCH_T03&member_of={zones[1]}&limit=1000",
        "any-of, forbidden, 2 member_of":
            f"{_SMALL}&{mixed}&member_of=in:{zones[0]},{zones[1]}&member_of=!{world.groups[3]}&limit=1000",
        "in_tree": f"{_SMALL}&in_tree={world.uuid('root', world.hosts // 2)}",
    }  # fmt: skip


def _flat() -> dict[str, str]:
    return {
        "2 groups, policy none": "resources_C=VCPU:2,MEMORY_MB:2048&required_C=HW_CPU_X86_AVX2"
                                 "&resources_D=DISK_GB:20&group_policy=none&limit=1000",
        "unsuffixed and 1 group, isolate": f"{_PARTS}&required_C=HW_CPU_X86_AVX2&group_policy=isolate&limit=1000",
        "root_required": f"{_SMALL}&root_required=HW_CPU_X86_AVX2,!CUSTOM_BENCH_T05&limit=1000",
    }  # fmt: skip


def _nested() -> dict[str, str]:
    functions = "".join(f"&resources_N{n}=SRIOV_NET_VF:1&required_N{n}={net}" for n, net in enumerate(NETS))
    placed = f"{_PARTS}&required_NUMA=HW_NUMA_ROOT&resources_N=SRIOV_NET_VF:1&group_policy=none&same_subtree=_NUMA,_N"
    return {
        "disk, NUMA, 2 VFs, isolate": f"{_PARTS}{functions}&group_policy=isolate&limit=1000",
        "disk, NUMA, 2 VFs, isolate, no limit": f"{_PARTS}{functions}&group_policy=isolate",
        "2 VFs of any network, isolate":
            f"{_PARTS}&resources_N1=SRIOV_NET_VF:1&resources_N2=SRIOV_NET_VF:1&group_policy=isolate&limit=1000",
        "same_subtree": f"{_PARTS}&resources_N=SRIOV_NET_VF:1&group_policy=isolate&same_subtree=_C,_N&limit=1000",
        "group without resources, root_required": f"{placed}&root_required=HW_CPU_X86_AVX2&limit=1000",
    }  # fmt: skip


def _wide() -> dict[str, str]:
    def groups(count: int) -> str:
        return "&".join(f"resources{n}={WIDE_CLASS}:1" for n in range(1, count + 1)) + "&group_policy=isolate"

    return {
        "4 groups, limit 1000": f"{groups(4)}&limit=1000",
        "6 groups, limit 1000": f"{groups(6)}&limit=1000",
        "6 groups, no limit": groups(6),
    }


def reads(world: World, some: list[int]) -> dict[str, list[str]]:
    """Paths to ask in turn, by name; `some` are numbers of hosts."""
    roots = [world.uuid("root", n) for n in some]
    resources = "VCPU:2,MEMORY_MB:2048,DISK_GB:20" if world.shape == "flat" else "DISK_GB:20"
    filters = f"required=HW_CPU_X86_AVX2,CUSTOM_BENCH_T03&member_of={world.zones[1]}"
    return {
        "provider": [f"/resource_providers/{root}" for root in roots],
        "providers by name": [f"/resource_providers?name={world.shape}-{n:06}" for n in some],
        "providers of a tree": [f"/resource_providers?in_tree={root}" for root in roots],
        "providers of a rack": [f"/resource_providers?member_of={rack}" for rack in world.racks[:50]],
        "providers with resources and traits": [f"/resource_providers?resources={resources}&{filters}"],
        "providers, all": ["/resource_providers"],
        "inventories": [f"/resource_providers/{root}/inventories" for root in roots],
        "usages of a provider": [f"/resource_providers/{root}/usages" for root in roots],
        "usages of a project": [f"/usages?project_id={project}" for project in PROJECTS],
    }
