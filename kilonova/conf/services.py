"""`[keystone]`, `[placement]`, `[neutron]`, `[glance]`, `[cinder]`, `[cyborg]`, `[service_user]`: whom compute calls.

Their credentials (`auth_type`, `auth_url`, `username` …) are registered by keystoneauth when they are used.
"""

from __future__ import annotations

from oslo_config import cfg


def _connection() -> tuple[cfg.Opt, ...]:
    return (
        cfg.StrOpt("cafile", help="Certificate authorities for TLS."),
        cfg.StrOpt("certfile", help="Client certificate for TLS."),
        cfg.StrOpt("keyfile", help="Key of the client certificate."),
        cfg.BoolOpt("insecure", default=False, help="Do not check the certificate of the service."),
        cfg.FloatOpt("timeout", help="Seconds to wait for an answer; unset is 60."),
    )


def _endpoint(service_type: str) -> tuple[cfg.Opt, ...]:
    return (
        cfg.StrOpt("service-type", default=service_type, help="Type in the catalog."),
        cfg.StrOpt("service-name", help="Name in the catalog; unset takes the first of the type."),
        cfg.ListOpt("valid-interfaces", default=["internal", "public"], help="Interfaces, best first."),
        cfg.StrOpt("region-name", help="Region in the catalog."),
        cfg.StrOpt("endpoint-override", help="Address in the place of the catalog's."),
    )


KEYSTONE = (*_connection(), *_endpoint("identity"))
PLACEMENT = (*_connection(), *_endpoint("placement"))
NEUTRON = (
    *_connection(),
    *_endpoint("network"),
    cfg.BoolOpt(
        "service_metadata_proxy", default=False,
        help="Guests' metadata requests come through Neutron's proxy, which says whose they are, and not directly.",
    ),
    cfg.StrOpt(
        "metadata_proxy_shared_secret", default="", secret=True, help="Key with which that proxy signs what it says.",
    ),
)
GLANCE = (*_connection(), *_endpoint("image"))
CYBORG = (*_connection(), *_endpoint("accelerator"))
CINDER = (
    *_connection(),
    cfg.StrOpt(
        "catalog_info", default="volumev3::publicURL", regex=r"^\w+:\w*:.*$",
        help="Type, name and interface in the catalog, with colons between.",
    ),
    cfg.StrOpt("endpoint_template", help="Address in the place of the catalog's; a project at its end is left out."),
    cfg.StrOpt("os_region_name", help="Region in the catalog."),
    cfg.BoolOpt("cross_az_attach", default=True, help="Whether server and volume may be in different zones."),
)
SERVICE_USER = (
    *_connection(),
    cfg.BoolOpt("send_service_user_token", default=False, help="Send the service's token beside the user's."),
)
