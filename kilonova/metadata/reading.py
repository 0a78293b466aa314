"""One guest's data at hand for the rows of both trees, and what those say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kilonova.compute.guest_data import GuestData
from kilonova.compute.world import World
from kilonova.core.server import Server
from kilonova.metadata.settings import Settings

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a row's function is given."""

    world: World
    settings: Settings
    data: GuestData

    @property
    def server(self) -> Server:
        """The guest's server."""
        return self.data.server

    @property
    def hostname(self) -> str:
        """The host name, with the domain where there is one."""
        domain = self.settings.dhcp_domain
        return f"{self.server.hostname}.{domain}" if domain else self.server.hostname

    def addresses(self, kind: str) -> list[dict[str, Any]]:
        """The `fixed_ips` or `floating_ips` of all interfaces."""
        return [entry for vif in self.server.network_info for entry in vif[kind]]


def listing(names: list[str]) -> bytes:
    """Names, one a line."""
    return "\n".join(names).encode()
