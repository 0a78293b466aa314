"""The service's own token and the catalog, through keystoneauth1's plugins; and clients made from option groups.

keystoneauth is asked only to get and renew a token and to read the catalog; what it says is kept here, so that no call
passes through it. Its session goes over the same transport as everything else.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kilonova.clients.rest import EndpointNotFound, RemoteUnavailable, RestClient, Transport
from kilonova.core import clock
from kilonova.core.errors import Invalid

LOG = logging.getLogger(__name__)

RENEW_BEFORE = 120.0  # seconds before its end a token is renewed


class CredentialsUnusable(Invalid):
    code, message = "credentials_unusable", "The credentials of this service cannot be used: {reason}."


class ServiceTokens:
    """A token that renews itself, for one set of credentials. `plugin` is a keystoneauth1 auth plugin."""

    def __init__(self, plugin: Any, session: Any) -> None:
        self._plugin = plugin
        self._session = session
        self._lock = threading.Lock()
        self._headers: Mapping[str, str] | None = None
        self._until = 0.0

    def headers(self) -> Mapping[str, str]:
        """`X-Auth-Token`. RemoteUnavailable when the identity service gives none."""
        headers = self._headers
        if headers is not None and clock.monotonic() < self._until:
            return headers
        with self._lock:
            if self._headers is None or clock.monotonic() >= self._until:
                self._fetch()
            assert self._headers is not None
            return self._headers

    def renew(self, stale: Mapping[str, str]) -> bool:
        """Get another token unless somebody already did; whether there is a new one to try."""
        with self._lock:
            if self._headers is None or stale.get("X-Auth-Token") == self._headers["X-Auth-Token"]:
                self._plugin.invalidate()
                self._fetch()
        return True

    def endpoint(self, types: Sequence[str], interfaces: Sequence[str], region: str | None, name: str | None) -> str:
        """The first address in the catalog for one of the service types, by preference of interface.

        EndpointNotFound, RemoteUnavailable.
        """
        catalog = self._access().service_catalog
        for service_type in types:
            for interface in interfaces:
                wanted = {"service_type": service_type, "interface": interface, "region_name": region}
                urls = catalog.get_urls(**wanted, service_name=name)
                if urls:
                    return str(urls[0])
        raise EndpointNotFound(service=types[0])

    def project_id(self) -> str:
        """The project that the token is for. RemoteUnavailable."""
        return str(self._access().project_id)

    def _fetch(self) -> None:
        access = self._access()
        left = (access.expires.replace(tzinfo=None) - clock.utcnow()).total_seconds()
        self._until = clock.monotonic() + max(left - RENEW_BEFORE, left / 2)
        self._headers = {"X-Auth-Token": str(access.auth_token)}

    def _access(self) -> Any:
        from keystoneauth1 import exceptions

        try:
            return self._plugin.get_access(self._session)
        except exceptions.ClientException as error:
            raise RemoteUnavailable(service="identity", reason=str(error)) from error


def refused(error: RemoteUnavailable) -> bool:
    """Whether the identity service answered, and does not let these credentials in."""
    from keystoneauth1 import exceptions

    cause = error.__cause__
    return isinstance(cause, exceptions.HttpError) and cause.http_status < 500


def service_tokens(conf: Any, groups: Sequence[str], transport: Transport) -> ServiceTokens:
    """Tokens for the credentials of the first group that has an `auth_type`. CredentialsUnusable.

    The options of the plugin are registered on `conf` by keystoneauth.
    """
    from keystoneauth1 import exceptions, loading, session

    from kilonova.clients import adapter

    for group in groups:
        loading.register_auth_conf_options(conf, group)
        if conf[group].auth_type or conf[group].auth_section:
            try:
                plugin = loading.load_auth_from_conf_options(conf, group)
            except exceptions.ClientException as error:
                raise CredentialsUnusable(reason=f"[{group}]: {str(error).rstrip('.')}") from error
            return ServiceTokens(plugin, session.Session(auth=plugin, session=adapter.session(transport)))
    raise CredentialsUnusable(reason=f"auth_type is set in none of the groups {', '.join(groups)}")


def password_tokens(
    transport: Transport, *, auth_url: str, username: str, password: str, project_name: str,
    user_domain_id: str = "default", project_domain_id: str = "default",
) -> ServiceTokens:  # fmt: skip
    """Tokens for a user with a password in a project, without a configuration file."""
    from keystoneauth1 import session
    from keystoneauth1.identity import v3

    from kilonova.clients import adapter

    plugin = v3.Password(
        auth_url=auth_url, username=username, password=password, project_name=project_name,
        user_domain_id=user_domain_id, project_domain_id=project_domain_id,
    )  # fmt: skip
    return ServiceTokens(plugin, session.Session(auth=plugin, session=adapter.session(transport)))


def catalog_endpoint(
    tokens: ServiceTokens,
    types: Sequence[str],
    *,
    interfaces: Sequence[str] = ("internal", "public"),
    region: str | None = None,
    name: str | None = None,
    trim: re.Pattern[str] | None = None,
) -> Callable[[], str]:
    """A function that answers the address from the catalog, asked once, without what `trim` matches."""
    found: list[str] = []

    def endpoint() -> str:
        if not found:
            found.append(_trimmed(tokens.endpoint(types, interfaces, region, name), trim))
        return found[0]

    return endpoint


def _trimmed(url: str, trim: re.Pattern[str] | None) -> str:
    return trim.sub("", url) if trim is not None else url


# Endings of an address that the clients add themselves, or that name one project.
_TRIM = {
    "neutron": re.compile(r"/v2\.0/?$"),
    "glance": re.compile(r"/v2/?$"),
    "cyborg": re.compile(r"/v2/?$"),
    "cinder": re.compile(r"(?<=/v3)/[^/]*/?$"),
}

# group: (service types by preference, microversion name in the header)
SERVICES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "placement": (("placement",), "placement"),
    "neutron": (("network",), "network"),
    "glance": (("image",), "image"),
    "cinder": (("block-storage", "volumev3"), "volume"),
    "keystone": (("identity",), "identity"),
    "cyborg": (("accelerator",), "accelerator"),
}


def rest_client(conf: Any, group: str, transport: Transport, tokens: ServiceTokens) -> RestClient:
    """A client of the service that the options of a group describe.

    `endpoint_override` (for volumes `endpoint_template`) is the address; else the catalog has it. Volumes are addressed
    without a project.
    """
    types, microversion = SERVICES[group]
    options = conf[group]
    volumes = group == "cinder"
    override = options.endpoint_template if volumes else options.endpoint_override
    endpoint: str | Callable[[], str]
    if override:
        endpoint = _trimmed(override, _TRIM.get(group))
    elif volumes:
        endpoint = _volume_endpoint(options, types, tokens)
    else:
        endpoint = catalog_endpoint(
            tokens,
            (options.service_type, *types) if options.service_type else types,
            interfaces=options.valid_interfaces or ("internal", "public"),
            region=options.region_name,
            name=options.service_name,
            trim=_TRIM.get(group),
        )
    return RestClient(
        types[-1] if not volumes else "volume",
        endpoint,
        transport,
        tokens,
        microversion=microversion,
        send_service_token=conf.service_user.send_service_user_token,
    )


def _volume_endpoint(options: Any, types: Sequence[str], tokens: ServiceTokens) -> Callable[[], str]:
    """`catalog_info` is `<type>:<name>:<interface>`."""
    kind, _, rest = options.catalog_info.partition(":")
    _name, _, interface = rest.partition(":")
    return catalog_endpoint(
        tokens,
        (kind, *types) if kind else types,
        interfaces=(interface.removesuffix("URL") or "public", "public"),
        region=options.os_region_name,
        trim=_TRIM["cinder"],
    )
