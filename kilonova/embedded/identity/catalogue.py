"""Services, endpoints and regions, and the catalogue that tokens carry."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from kilonova.embedded.identity.nouns import Noun, list_op, show_op
from kilonova.embedded.identity.tables import ENDPOINTS, REGIONS, SERVICES
from kilonova.embedded.identity.world import Token
from kilonova.embedded.store import page

SERVICE = Noun("service", "services", SERVICES, ("id", "name", "type", "description", "enabled"))
ENDPOINT = Noun("endpoint", "endpoints", ENDPOINTS, ("id", "service_id", "interface", "region_id", "url", "enabled"))
REGION = Noun("region", "regions", REGIONS, ("id", "description", "parent_region_id"))


def catalogue(connection: Connection, token: Token) -> list[dict[str, Any]]:
    """The services with their endpoints, as tokens and `/v3/auth/catalog` show them."""
    places: dict[str, list[dict[str, Any]]] = {}
    project_id = token.project["id"] if token.project else ""
    for row in page(ENDPOINTS.find(connection, {"enabled": True}), sort=(("id", "asc"),))[0]:
        url = row["url"].replace("$(project_id)s", project_id).replace("%(project_id)s", project_id)
        places.setdefault(row["service_id"], []).append({
            "id": row["id"], "interface": row["interface"], "region": row["region_id"],
            "region_id": row["region_id"], "url": url,
        })  # fmt: skip
    services = page(SERVICES.find(connection, {"enabled": True}), sort=(("type", "asc"),))[0]
    return [{"id": row["id"], "type": row["type"], "name": row["name"], "endpoints": places.get(row["id"], [])}
            for row in services]  # fmt: skip


OPS = (
    list_op(SERVICE, "read"),
    show_op(SERVICE, "read"),
    list_op(ENDPOINT, "read"),
    show_op(ENDPOINT, "read"),
    list_op(REGION, None),
    show_op(REGION, None),
)
