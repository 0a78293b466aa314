"""What the metadata service reads of the configuration, taken once at start."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kilonova.conf.load import ConfigError
from kilonova.core import json

LOG = logging.getLogger(__name__)

_STATIC = "StaticJSON"


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `[api]` and `[neutron]`.

    proxy: requests come through Neutron's proxy and are signed with `secret`. cache: seconds. static: vendor data,
    None when they are not to be served.
    """

    proxy: bool = False
    secret: str = field(default="", repr=False)
    cache: float = 15
    dhcp_domain: str = "novalocal"
    static: dict[str, Any] | None = field(default_factory=dict)


def from_conf(conf: Any) -> Settings:
    """The settings of a loaded configuration. ConfigError when the vendor data cannot be read."""
    providers = conf.api.vendordata_providers
    for name in providers:
        if name != _STATIC:
            LOG.warning("[api] vendordata_providers names %s, which is not served; only %s is", name, _STATIC)
    return Settings(
        proxy=conf.neutron.service_metadata_proxy, secret=conf.neutron.metadata_proxy_shared_secret,
        cache=conf.api.metadata_cache_expiration, dhcp_domain=conf.api.dhcp_domain,
        static=_vendor_data(conf.api.vendordata_jsonfile_path) if _STATIC in providers else None,
    )  # fmt: skip


def _vendor_data(path: str | None) -> dict[str, Any]:
    if not path:
        return {}
    try:
        document = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"[api] vendordata_jsonfile_path {path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"[api] vendordata_jsonfile_path {path} has no JSON object.")
    return document
