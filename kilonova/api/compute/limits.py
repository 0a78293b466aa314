"""/limits: a project's limits and what it uses of them, in the old names."""

from __future__ import annotations

from typing import Any

from kilonova.compute import quota_sets
from kilonova.http.fields import Param, Query
from kilonova.http.op import Op, Request
from kilonova.http.views import Getter, Out, View

_OTHER = "os_compute_api:limits:other_project"

QUERY = Query((Param("tenant_id"),), strict="2.75")


def _limit(name: str) -> Getter:
    return lambda usage, req: usage[name].limit


def _used(name: str) -> Getter:
    return lambda usage, req: usage[name].in_use


ABSOLUTE = View(
    "absolute limits",
    Out("maxTotalCores", _limit("cores")),
    Out("maxTotalInstances", _limit("instances")),
    Out("maxTotalRAMSize", _limit("ram")),
    Out("maxTotalKeypairs", _limit("key_pairs")),
    Out("maxServerMeta", _limit("metadata_items")),
    Out("maxServerGroups", _limit("server_groups")),
    Out("maxServerGroupMembers", _limit("server_group_members")),
    Out("maxImageMeta", _limit("metadata_items"), until="2.38"),
    Out("maxPersonality", _limit("injected_files"), until="2.56"),
    Out("maxPersonalitySize", _limit("injected_file_content_bytes"), until="2.56"),
    Out("maxSecurityGroups", _limit("security_groups"), until="2.35"),
    Out("maxSecurityGroupRules", _limit("security_group_rules"), until="2.35"),
    Out("maxTotalFloatingIps", _limit("floating_ips"), until="2.35"),
    Out("totalCoresUsed", _used("cores")),
    Out("totalInstancesUsed", _used("instances")),
    Out("totalRAMUsed", _used("ram")),
    Out("totalServerGroupsUsed", _used("server_groups")),
    Out("totalFloatingIpsUsed", _used("floating_ips"), until="2.35"),
    Out("totalSecurityGroupsUsed", _used("security_groups"), until="2.35"),
)


def index(req: Request) -> dict[str, Any]:
    """The caller's project's limits, or another's."""
    project = str(req.query.get("tenant_id") or req.ctx.project_id)
    if project != req.ctx.project_id:
        req.authorize(_OTHER, {"project_id": project})
    usage = quota_sets.own_usage(req.world, project)
    return {"limits": {"rate": [], "absolute": ABSOLUTE.one(usage, req)}}


OPS: tuple[Op, ...] = (Op("GET", "/limits", index, policy="os_compute_api:limits", also=(_OTHER,), query=QUERY),)
