"""`kilonova explain SERVER|REQUEST-ID`: why the scheduler decided as it did, on one screen."""

from __future__ import annotations

import argparse
import json
import re

from kilonova.cmd import scheduler_api
from kilonova.core import ids
from kilonova.core.errors import Conflict, NotFound


class NoDecision(NotFound):
    code = "no_decision"
    message = (
        "No scheduling decision about {reference} is kept: there is no such server or request, or it is too old."
    )


class SeveralServers(Conflict):
    code, message = "several_servers", "Several servers have the name {name}: say which by its uuid, {uuids}."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("reference", metavar="SERVER|REQUEST-ID", help="a server's name or uuid, a request's id, or "
                        "the number of a decision")  # fmt: skip
    parser.add_argument("--host", metavar="NAME", help="tell the fate of this host")
    scheduler_api.options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the newest decision about it."""
    from urllib.parse import quote, urlencode

    from kilonova.clients.rest import RemoteNotFound

    query = "?" + urlencode({"host": arguments.host}) if arguments.host else ""
    path = f"/decisions/{quote(_reference(arguments), safe='')}{query}"
    try:
        found = scheduler_api.ask(scheduler_api.client(arguments), "GET", path)["decision"]
    except RemoteNotFound as error:
        raise NoDecision(reference=arguments.reference) from error
    if arguments.format == "json":
        print(json.dumps(found, indent=2))
    else:
        from kilonova.cmd import screens

        screens.decision(found)
    return 0


def _reference(arguments: argparse.Namespace) -> str:
    """What the API takes: the uuid of the one server of this name, or what was given. SeveralServers."""
    given = str(arguments.reference)
    if given.isdigit() or ids.is_uuid_like(given) or ids.is_request_id(given):
        return given
    from urllib.parse import urlencode

    query = urlencode({"all_tenants": 1, "name": f"^{re.escape(given)}$"})
    servers = scheduler_api.ask(scheduler_api.compute(arguments), "GET", f"/servers?{query}")["servers"]
    if len(servers) > 1:
        raise SeveralServers(name=given, uuids=" or ".join(server["id"] for server in servers))
    return str(servers[0]["id"]) if servers else given
