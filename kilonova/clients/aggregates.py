"""Aggregates, hosts and flavors of a cloud as its administrator reads them. Only the compute API is used."""

from __future__ import annotations

from collections.abc import Iterator

from kilonova.clients.rest import Doc, RestClient, query

VERSION = "2.61"
"""The first that shows extra specs with the flavors."""

_PAGE = 1000


class HttpAggregates:
    """The compute service over its REST API."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def aggregates(self) -> list[Doc]:
        """All aggregates, with hosts and metadata."""
        return list(self._rest.call("GET", "/os-aggregates", version=VERSION)["aggregates"])

    def hosts(self) -> set[str]:
        """The hosts that have a compute service."""
        found = self._rest.call("GET", "/os-services" + query({"binary": "nova-compute"}), version=VERSION)
        return {row["host"] for row in found["services"]}

    def nodes(self) -> dict[str, str]:
        """The provider's uuid of each hypervisor to its host."""
        return {row["id"]: row["service"]["host"] for row in self._pages("os-hypervisors", "/os-hypervisors/detail")}

    def flavors(self) -> dict[str, dict[str, str]]:
        """The extra specs of every flavor by its name, those of private flavors too."""
        rows = self._pages("flavors", "/flavors/detail", is_public="None")
        return {row["name"]: row.get("extra_specs") or {} for row in rows}

    def _pages(self, key: str, path: str, **filters: str) -> Iterator[Doc]:
        key, marker = key.removeprefix("os-"), None
        while True:
            asked = path + query({**filters, "limit": _PAGE, "marker": marker})
            rows = self._rest.call("GET", asked, version=VERSION)[key]
            yield from rows
            if len(rows) < _PAGE:
                return
            marker = rows[-1]["id"]
