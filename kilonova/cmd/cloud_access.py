"""The compute service and Placement of a cloud, as its administrator reaches them through the catalogue.

Who that is, the first of these says: --os-cloud, the clouds.yaml of --state-dir, the OS_* variables, the credentials in
the configuration (`[service_user]` or `[keystone_authtoken]`).
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kilonova.clients.auth import CredentialsUnusable, ServiceTokens, catalog_endpoint, refused, service_tokens
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import EndpointNotFound, RemoteUnavailable, RestClient
from kilonova.clients.servers import HttpServers
from kilonova.cmd import os_cloud, state_dir
from kilonova.cmd.os_cloud import Login
from kilonova.http.transport import SocketTransport, socket_transport
from kilonova.wiring.broker import CREDENTIALS

_INTERFACES: Final = ("internal", "public")
_PUBLIC: Final = ("public", "internal")


@dataclass(frozen=True)
class Services:
    """What can be asked."""

    servers: HttpServers
    placement: HttpPlacement
    compute: RestClient


def open_cloud(
    arguments: argparse.Namespace, conf: Any, environ: Mapping[str, str] = os.environ
) -> Services | str:
    """The services, or why there are none to ask: no credentials, no identity service, no compute in the catalogue.

    RemoteUnavailable when the credentials are refused; NoSuchCloud and its like when they cannot be used.
    """
    for name in ("keystoneauth", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)  # what they warn of, we say
    login = _login(arguments, environ)
    if login is not None:
        tokens, transport = ServiceTokens(login.session.auth, login.session), os_cloud.transport(login)
    else:
        try:
            tokens, transport = _of_configuration(conf)
        except CredentialsUnusable:
            if any(conf[group].auth_type or conf[group].auth_section for group in CREDENTIALS):
                raise
            return "there are no credentials: name a cloud with --os-cloud, or set [keystone_authtoken]."
    region = arguments.region or (login.region if login else None)
    interfaces = _PUBLIC if login else _INTERFACES

    def rest(kind: str) -> RestClient:
        endpoint = catalog_endpoint(tokens, (kind,), interfaces=interfaces, region=region)
        return RestClient(kind, endpoint, transport, tokens)

    compute, placement = rest("compute"), rest("placement")
    try:
        compute.url("")
        placement.url("")
    except EndpointNotFound as error:
        return error.text
    except RemoteUnavailable as error:
        if refused(error):
            raise
        return error.text
    return Services(HttpServers(compute), HttpPlacement(placement), compute)


def _login(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Login | None:
    if arguments.state_dir is not None:
        file = state_dir.chosen(arguments) / "clouds.yaml"
        return os_cloud.login(arguments.os_cloud or os_cloud.ADMIN, {"OS_CLIENT_CONFIG_FILE": str(file)})
    if arguments.os_cloud or environ.get("OS_CLOUD") or environ.get("OS_AUTH_URL"):
        return os_cloud.login(arguments.os_cloud, environ)
    return None


def _of_configuration(conf: Any) -> tuple[ServiceTokens, SocketTransport]:
    """CredentialsUnusable."""
    from keystoneauth1 import loading

    for group in CREDENTIALS:
        loading.register_session_conf_options(conf, group)
        loading.register_auth_conf_options(conf, group)
    group = next((group for group in CREDENTIALS if conf[group].auth_type or conf[group].auth_section), CREDENTIALS[0])
    transport = socket_transport(conf[group])
    return service_tokens(conf, CREDENTIALS, transport), transport
