"""The metadata service as a process of its own, or as a WSGI callable for another HTTP server."""

from __future__ import annotations

import logging
from typing import Any

from kilonova.http import middleware
from kilonova.http.server import HttpServer
from kilonova.metadata import settings as metadata_settings
from kilonova.metadata.app import MetadataApp
from kilonova.wiring.parts import Cloud, Part, WsgiApp, mounted
from kilonova.wiring.region import Region, region

LOG = logging.getLogger(__name__)


def metadata(conf: Any, host: str, port: int) -> Cloud:
    """The metadata service."""
    ground = region(conf, for_clients=True)
    try:
        app = metadata_app(conf, ground)
    except BaseException:
        ground.close()
        raise
    return Cloud(
        f"http://{host}:{port}", [Part(lambda: None, ground.leave)], ground.databases,
        HttpServer(app, host, port),
    )  # fmt: skip


def metadata_app(conf: Any, ground: Region | None = None) -> WsgiApp:
    """The metadata service as a WSGI callable, at the root and below `/metadata`."""
    settings = metadata_settings.from_conf(conf)
    if settings.proxy and not settings.secret:
        LOG.warning("[neutron] metadata_proxy_shared_secret is empty: whoever reaches this service can read the"
                    " metadata of every server")  # fmt: skip
    ground = ground or region(conf, for_clients=True)
    app = middleware.pipeline(
        MetadataApp(ground.world(), settings), service="metadata", settings=middleware.settings(conf)
    )
    return mounted({"metadata": app}, lambda: True, otherwise=app)
