"""Addresses of brokers (`transport_url`)."""

from __future__ import annotations

Place = tuple[frozenset[str], str]


def place(url: str) -> Place:
    """Which brokers and which virtual host, whatever the user, the password and the order of the brokers."""
    rest = url.partition("://")[2].partition("?")[0]
    hosts, _, virtual_host = rest.partition("/")
    found = (host.rpartition("@")[2].lower() for host in hosts.split(","))
    return frozenset(host if _has_port(host) else f"{host}:5672" for host in found), virtual_host


def _has_port(host: str) -> bool:
    return host.rpartition("]")[2].count(":") == 1
