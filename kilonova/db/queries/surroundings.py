"""What a scheduling request is judged by beside the hosts: versions of compute services, images of servers on hosts."""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa

from kilonova.db.cell_schema import instances, services
from kilonova.sql.engine import Database

_PREFIX = "image_"
_lowest = sa.select(sa.func.min(services.c.version)).where(
    services.c.binary == "nova-compute", services.c.deleted == sa.false()
)
_images = sa.select(instances.c.host, instances.c.system_metadata).where(
    instances.c.host.is_not(None), instances.c.deleted == sa.false()
)


def lowest_compute_version(cell: Database) -> int | None:
    """The lowest version that a compute service of the cell reports; None without any."""
    with cell.read() as connection:
        found = connection.execute(_lowest).scalar()
    return None if found is None else int(found)


def image_properties(cell: Database) -> dict[str, Counter[tuple[str, str]]]:
    """Per host how many of its servers have which image property (name, value)."""
    counted: dict[str, Counter[tuple[str, str]]] = {}
    with cell.read() as connection:
        for host, metadata in connection.execute(_images):
            of_image = {key: str(value) for key, value in metadata.items() if key.startswith(_PREFIX)}
            counted.setdefault(host, Counter()).update(
                (key.removeprefix(_PREFIX), value) for key, value in of_image.items()
            )
    return counted
