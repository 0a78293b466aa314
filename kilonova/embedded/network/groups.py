"""Security groups and their rules. The first use of a project's groups creates its group `default`."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.embedded.network import errors
from kilonova.embedded.network.attributes import REQUIRED, Attribute, boolean, cidr, integer, maybe, one_of, uuid
from kilonova.embedded.network.nouns import Caller, Noun, fetch, stamped
from kilonova.embedded.network.tables import (
    DEFAULT_GROUPS,
    GROUPS,
    RULES,
    default_groups,
    groups,
    port_groups,
    rules,
)
from kilonova.embedded.store import Row, transact

DEFAULT = "default"

# protocol names: (numbers that mean the same); IANA protocol numbers, as Neutron names them.
PROTOCOLS = {
    "ah": 51, "dccp": 33, "egp": 8, "esp": 50, "gre": 47, "icmp": 1, "icmpv6": 58, "igmp": 2, "ipip": 4,
    "ipv6-encap": 41, "ipv6-frag": 44, "ipv6-icmp": 58, "ipv6-nonxt": 59, "ipv6-opts": 60, "ipv6-route": 43,
    "ospf": 89, "pgm": 113, "rsvp": 46, "sctp": 132, "tcp": 6, "udp": 17, "udplite": 136, "vrrp": 112,
}  # fmt: skip
_PORTED = frozenset((6, 17, 33, 132, 136))
_ICMP = frozenset((1, 58))
_RULES_OF = (sa.select(RULES).where(RULES.c.security_group_id.in_(sa.bindparam("groups", type_=sa.String,
             expanding=True))).order_by(RULES.c.created_at, RULES.c.id))  # fmt: skip
_VISIBLE = sa.select(GROUPS.c.id).where(GROUPS.c.id.in_(sa.bindparam("ids", type_=sa.String, expanding=True)))
_DEFAULT_OF = (sa.select(DEFAULT_GROUPS.c.group_id)
               .where(DEFAULT_GROUPS.c.project_id == sa.bindparam("project", type_=sa.String)))  # fmt: skip


# -- the default group -------------------------------------------------------------------------------------------


def default_of(c: Connection, project: str) -> str:
    """The id of the project's default group, made now if it has none. Raises Duplicate when another was faster."""
    found = c.execute(_DEFAULT_OF, {"project": project}).scalar()
    if found is not None:
        return str(found)
    row = stamped({"name": DEFAULT, "description": "Default security group", "stateful": True}, project)
    groups.insert(c, row)
    default_groups.insert(c, {"project_id": project, "group_id": row["id"]})
    _standard_rules(c, row, inward=True)
    return str(row["id"])


def ensure_default(caller: Caller, asked: str | None) -> None:
    """Make the default group of the caller's project, or of the one an administrator asks for, if it has none yet."""
    project = (asked if caller.privileged else None) or caller.project_id
    if project is None:
        return
    with caller.world.database.read() as c:
        if c.execute(_DEFAULT_OF, {"project": project}).scalar() is not None:
            return
    transact(caller.world.database, lambda c: default_of(c, project))


def _standard_rules(c: Connection, group: Row, *, inward: bool) -> None:
    """Everything may go out; in the default group, its members may come in."""
    for direction in ("egress", "ingress") if inward else ("egress",):
        for ethertype in ("IPv4", "IPv6"):
            remote = group["id"] if direction == "ingress" else None
            RULE.insert(c, stamped(_RULE_NULLS | {
                "security_group_id": group["id"], "direction": direction, "ethertype": ethertype,
                "remote_group_id": remote}, group["project_id"]))  # fmt: skip


_RULE_NULLS: Row = dict.fromkeys(("protocol", "port_range_min", "port_range_max", "remote_ip_prefix")) | {
    "name": "", "description": ""}  # fmt: skip


def of_port(c: Connection, caller: Caller, project: str, asked: Sequence[str] | None) -> list[str]:
    """The groups of a port: those asked for, or the project's default. Raises SecurityGroupNotFound."""
    if asked is None:
        return [default_of(c, project)]
    if not asked:
        return []
    statement = _VISIBLE if caller.privileged else _VISIBLE.where(GROUPS.c.project_id == project)
    known = set(c.execute(statement, {"ids": list(asked)}).scalars())
    for group in asked:
        if group not in known:
            raise errors.SecurityGroupNotFound(id=group)
    return list(asked)


# -- groups ------------------------------------------------------------------------------------------------------


def _create_group(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    default_of(c, row["project_id"])
    if row["name"] == DEFAULT:
        raise errors.SecurityGroupDefaultAlreadyExists
    noun.insert(c, row)
    _standard_rules(c, row, inward=False)


def _change_group(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    is_default = bool(default_groups.find(c, {"group_id": row["id"]}))
    if "name" in changes and changes["name"] != row["name"] and (is_default or changes["name"] == DEFAULT):
        raise errors.SecurityGroupCannotRemoveDefault("The name of the default security group is its own, and stays.")
    flips = changes.get("stateful", row["stateful"]) != row["stateful"]
    if flips and port_groups.find(c, {"group_id": row["id"]}):
        raise errors.SecurityGroupInUse(id=row["id"])


def _delete_group(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    if port_groups.find(c, {"group_id": row["id"]}):
        raise errors.SecurityGroupInUse(id=row["id"])
    if not caller.privileged and default_groups.find(c, {"group_id": row["id"]}):
        raise errors.SecurityGroupCannotRemoveDefault
    groups.delete(c, row["id"])


def _derive_group(c: Connection, rows: list[Row]) -> None:
    of: dict[str, list[Row]] = {row["id"]: [] for row in rows}
    found = [dict(row) for row in c.execute(_RULES_OF, {"groups": list(of)}).mappings()] if of else []
    _derive_rule(c, found)
    for rule in found:
        of[rule["security_group_id"]].append(RULE.view(rule, privileged=True))
    for row in rows:
        row["security_group_rules"] = of[row["id"]]


# -- rules -------------------------------------------------------------------------------------------------------


def _number(protocol: str | None) -> int | None:
    if protocol is None:
        return None
    return int(protocol) if protocol.isdigit() else PROTOCOLS[protocol]


def _create_rule(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    group = fetch(c, caller, GROUP, row["security_group_id"], lock=True)
    row["project_id"] = group["project_id"]
    _check_rule(row)
    if row["remote_group_id"] is not None:
        fetch(c, caller, GROUP, row["remote_group_id"])
    same = [old for old in rules.find(c, {"security_group_id": group["id"]}) if _meaning(old) == _meaning(row)]
    if same:
        raise errors.SecurityGroupRuleExists(id=same[0]["id"])
    noun.insert(c, row)


def _meaning(row: Row) -> tuple[Any, ...]:
    anywhere = "0.0.0.0/0" if row["ethertype"] == "IPv4" else "::/0"
    prefix = None if row["remote_ip_prefix"] == anywhere else row["remote_ip_prefix"]
    return (row["direction"], row["ethertype"], _number(row["protocol"]), row["port_range_min"],
            row["port_range_max"], prefix, row["remote_group_id"])  # fmt: skip


def _check_rule(row: Row) -> None:
    number, low, high = _number(row["protocol"]), row["port_range_min"], row["port_range_max"]
    if row["remote_group_id"] is not None and row["remote_ip_prefix"] is not None:
        raise errors.HTTPBadRequest("Only one of remote_ip_prefix and remote_group_id may be given.")
    prefix = row["remote_ip_prefix"]
    if prefix is not None and f"IPv{ipaddress.ip_network(prefix).version}" != row["ethertype"]:
        raise errors.HTTPBadRequest(f"The remote range {prefix} is not of {row['ethertype']}.")
    if number == 58 and row["ethertype"] == "IPv4":
        raise errors.HTTPBadRequest("ICMP version 6 does not go with IPv4.")
    if (low, high) == (None, None):
        return
    if number in _ICMP:
        if low is None:
            raise errors.HTTPBadRequest("An ICMP code needs an ICMP type (port_range_min).")
        if low > 255 or (high is not None and high > 255):
            raise errors.HTTPBadRequest("ICMP types and codes go from 0 to 255.")
    elif number not in _PORTED:
        raise errors.HTTPBadRequest(f"Ports do not go with protocol {row['protocol']}.")
    elif low is None or high is None or low > high:
        raise errors.HTTPBadRequest("Both ends of the port range are needed, the lower one first.")
    elif low == 0 and number in (6, 17):
        raise errors.HTTPBadRequest("Ports begin at 1.")


def _derive_rule(c: Connection, rows: list[Row]) -> None:
    asked = {row["security_group_id"] for row in rows}
    found = default_groups.find(c, {"group_id": asked}) if asked else []
    defaults = {row["group_id"] for row in found}
    for row in rows:
        row["normalized_cidr"] = row["remote_ip_prefix"]
        row["belongs_to_default_sg"] = row["security_group_id"] in defaults


def _protocol(value: Any) -> str | None:
    """A protocol's name or number as text; null and "any" are every protocol."""
    if value is None or value in ("any", "0", 0, ""):
        return None
    name = str(value).lower()
    if name not in PROTOCOLS and not (name.isdigit() and int(name) <= 255):
        raise ValueError(f"{value!r} is not a protocol")
    return name


def _ethertype(value: Any) -> str:
    found = {"ipv4": "IPv4", "ipv6": "IPv6"}.get(str(value).lower())
    if found is None:
        raise ValueError(f"{value!r} is not IPv4 or IPv6")
    return found


def _prefix(value: Any) -> str | None:
    return None if value in (None, "") else cidr(value)


RULE = Noun(
    "security_group_rule", "security_group_rules", rules, errors.SecurityGroupRuleNotFound,
    own=(
        Attribute("security_group_id", uuid, REQUIRED, set="create"),
        Attribute("direction", one_of("ingress", "egress"), REQUIRED, set="create"),
        Attribute("ethertype", _ethertype, "IPv4", set="create"),
        Attribute("protocol", _protocol, None, set="create"),
        Attribute("port_range_min", maybe(integer(0, 65535)), None, set="create"),
        Attribute("port_range_max", maybe(integer(0, 65535)), None, set="create"),
        Attribute("remote_ip_prefix", _prefix, None, set="create"),
        Attribute("remote_group_id", maybe(uuid), None, set="create"),
        Attribute("remote_address_group_id", one_of(None), None, set="create", column=""),
        Attribute("normalized_cidr", set="never", column=""),
        Attribute("belongs_to_default_sg", set="never", column=""),
    ),
    create=_create_rule, derive=_derive_rule, nameless=True,
)  # fmt: skip
GROUP = Noun(
    "security_group", "security_groups", groups, errors.SecurityGroupNotFound,
    own=(
        Attribute("stateful", boolean, True),
        Attribute("shared", default=False, set="never", column=""),
        Attribute("security_group_rules", default=(), set="never", column=""),
    ),
    create=_create_group, update=_change_group, delete=_delete_group, derive=_derive_group,
)  # fmt: skip
