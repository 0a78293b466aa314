"""What a database's address may be, and the driver for each kind of database.

The driver need not be named: `postgresql://` is psycopg, `mysql://` and `mariadb://` are PyMySQL.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from kilonova.core.errors import Invalid
from kilonova.core.urls import masked_database

_DRIVERS: Final = {
    "sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql",
}  # fmt: skip
_EXTRAS: Final = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}


class AddressUnusable(Invalid):
    code, message = "database_address_unusable", "The database address {address} cannot be used: {reason}."


def parse(text: str) -> URL:
    """The address as SQLAlchemy has it, with a driver. AddressUnusable."""
    try:
        url = make_url(text)
    except (sa.exc.ArgumentError, ValueError) as error:
        reason = "it has not the form DIALECT://USER:PASSWORD@HOST/DATABASE"
        raise AddressUnusable(address=masked_database(text), reason=reason) from error
    kind = url.get_backend_name()
    if kind not in _DRIVERS:
        known = ", ".join(_DRIVERS)
        raise AddressUnusable(address=masked_database(text), reason=f"{kind} is none of {known}")
    if not url.database and kind != "sqlite":
        raise AddressUnusable(address=masked_database(text), reason="it names no database")
    return url if "+" in url.drivername else url.set(drivername=_DRIVERS[kind])


def make_engine(url: URL, **options: Any) -> sa.Engine:
    """An engine; AddressUnusable when the driver is not installed or does not know an option of the address."""
    try:
        return sa.create_engine(url, **options)
    except ModuleNotFoundError as error:
        kind = url.get_backend_name()
        extra = f", which comes with kilonova[{_EXTRAS[kind]}]" if kind in _EXTRAS else ""
        reason = f"the driver {error.name} is not installed{extra}"
        raise AddressUnusable(address=shown(url), reason=reason) from error
    except sa.exc.ArgumentError as error:
        raise AddressUnusable(address=shown(url), reason=" ".join(str(error).split()).rstrip(".")) from error


def shown(url: URL) -> str:
    """The address without its password."""
    return masked_database(url.render_as_string(hide_password=False))


def beside(text: str, ending: str) -> str:
    """The address of a database on the same server, with `ending` after its name: how cell0's is found."""
    url = parse(text)
    name = url.database or ""
    stem, dot, suffix = name.rpartition(".") if url.get_backend_name() == "sqlite" else (name, "", "")
    if not stem or "/" in suffix:
        stem, dot, suffix = name, "", ""
    return url.set(database=f"{stem}{ending}{dot}{suffix}").render_as_string(hide_password=False)
