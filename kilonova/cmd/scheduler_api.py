"""The scheduler's API of a running cloud, for the commands that ask it.

Whose credentials: --os-cloud, the OS_* variables, or else the administrator of the cloud that `kilonova up` keeps.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from kilonova.cmd import os_cloud, state_dir
from kilonova.core.errors import Forbidden, Invalid

if TYPE_CHECKING:
    from kilonova.clients.rest import RestClient
    from kilonova.cmd.os_cloud import Login



class HintMalformed(Invalid):
    code, message = "hint_malformed", "The hint {hint} is not KEY=VALUE."


class NotAdministrator(Forbidden):
    """The credentials are good, and not enough."""

    code = "not_administrator"
    message = (
        "{reason} Take an administrator's credentials: "
        f"--os-cloud {os_cloud.ADMIN} is one's that `kilonova up` writes."
    )


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which cloud, and how the answer looks."""
    cloud(parser)
    parser.add_argument("-f", "--format", choices=("table", "json"), default="table", help="default: %(default)s")


def cloud(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which cloud."""
    state_dir.configure(parser)
    add = parser.add_argument
    add("--os-cloud", metavar="NAME", help="an administrator's cloud in clouds.yaml (default: OS_CLOUD, or the OS_* "
        "variables, or the cloud of the state directory)")  # fmt: skip
    add("--region", help="region of the endpoint (default: that of the credentials)")


def asked(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is to be scheduled."""
    add = parser.add_argument
    add("--flavor", metavar="FLAVOR", help="id or name")
    add("--image", metavar="IMAGE", help="id or name")
    add("--az", metavar="ZONE[:HOST[:NODE]]", help="availability zone, or a host that is forced")
    add("--hint", metavar="KEY=VALUE", action="append", default=[], help="scheduler hint; repeatable")
    add("--project", metavar="ID", help="whose servers (default: the caller's own project)")
    add("--server", metavar="UUID", help="take the stored request of this server, with what else is given in its place")
    add("--spec", metavar="FILE", type=Path, help="take the request spec in this file, as JSON")


def body(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the options of `asked` say. HintMalformed, SpecUnusable."""
    hints: dict[str, list[str]] = {}
    for hint in arguments.hint:
        key, separator, value = hint.partition("=")
        if not separator or not key:
            raise HintMalformed(hint=hint)
        hints.setdefault(key, []).append(value)
    given = {
        "flavor": arguments.flavor, "image": arguments.image, "availability_zone": arguments.az,
        "hints": {key: values if len(values) > 1 else values[0] for key, values in hints.items()} or None,
        "project_id": arguments.project, "server": arguments.server,
        "spec": read_json(arguments.spec) if arguments.spec is not None else None,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


class FileUnusable(Invalid):
    code, message = "file_unusable", "{path} cannot be used: {reason}."


def read_json(path: Path) -> Any:
    """The document of a file. FileUnusable."""
    from kilonova.core import json

    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise FileUnusable(path=str(path), reason=(error.strerror or str(error)).lower()) from error
    except ValueError as error:
        raise FileUnusable(path=str(path), reason="it is no JSON") from error


def client(arguments: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> RestClient:
    """The API, not yet asked. NoCredentials and its like."""
    return _client(arguments, environ, "scheduler", _endpoint)


def compute(arguments: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> RestClient:
    """The Compute API of the same cloud."""
    return _client(arguments, environ, "compute", _compute_endpoint)


def ask(api: RestClient, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The document that one of the two APIs answers. NotAdministrator, and what else it refuses."""
    from kilonova.clients.rest import RemoteForbidden

    try:
        found: dict[str, Any] = api.call(method, path, json=body)
    except RemoteForbidden as error:
        raise NotAdministrator(reason=error.text) from error
    return found


def _client(
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
    service: str,
    endpoint: Callable[[Any, str | None], Callable[[], str]],
) -> RestClient:
    from kilonova.clients.auth import ServiceTokens
    from kilonova.clients.rest import RestClient

    logging.getLogger("keystoneauth").setLevel(logging.ERROR)  # what it warns of, we say
    login = _login(arguments, environ)
    tokens = ServiceTokens(login.session.auth, login.session)
    return RestClient(service, endpoint(tokens, arguments.region or login.region), os_cloud.transport(login), tokens)


def _compute_endpoint(tokens: Any, region: str | None) -> Callable[[], str]:
    from kilonova.clients.auth import catalog_endpoint

    return catalog_endpoint(tokens, ("compute",), interfaces=("public", "internal"), region=region)


def _endpoint(tokens: Any, region: str | None) -> Callable[[], str]:
    """The scheduler's in the catalogue, or where the process that serves compute has it."""
    from kilonova.clients.auth import catalog_endpoint
    from kilonova.clients.rest import EndpointNotFound

    def find() -> str:
        try:
            return catalog_endpoint(tokens, ("scheduler",), interfaces=("public", "internal"), region=region)()
        except EndpointNotFound:
            return urljoin(_compute_endpoint(tokens, region)(), "/scheduler")

    return find


def _login(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Login:
    elsewhere = arguments.os_cloud or environ.get("OS_CLOUD") or environ.get("OS_AUTH_URL")
    if arguments.state_dir is None and elsewhere:
        return os_cloud.login(arguments.os_cloud, environ)
    file = state_dir.chosen(arguments) / "clouds.yaml"
    if arguments.state_dir is None and not file.exists():
        raise os_cloud.NoCredentials
    return os_cloud.login(arguments.os_cloud or os_cloud.ADMIN, {"OS_CLIENT_CONFIG_FILE": str(file)})
