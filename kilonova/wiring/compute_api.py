"""The Compute API as a process of its own, or as a WSGI callable for another HTTP server."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.app import make_app as compute_app
from kilonova.http import middleware
from kilonova.http.auth import Auth
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.server import HttpServer
from kilonova.wiring.parts import Cloud, Part, WsgiApp, mounted
from kilonova.wiring.region import Region, region
from kilonova.wiring.www_authenticate import auth_uri


def api(conf: Any, host: str, port: int) -> Cloud:
    """The Compute API."""
    ground = region(conf, for_clients=True)
    try:
        ground.bus.connect()  # before anybody can ask us for what takes it
    except BaseException:
        ground.close()
        raise
    return Cloud(
        f"http://{host}:{port}", [Part(lambda: None, ground.leave)], ground.databases,
        HttpServer(api_app(conf, ground), host, port),
    )  # fmt: skip


def api_app(conf: Any, ground: Region | None = None) -> WsgiApp:
    """The Compute API as a WSGI callable, at the root and below `/compute`."""
    ground = ground or region(conf, for_clients=True)
    policy = Policy(compute_rules(), conf)
    auth = Auth(conf)
    options = middleware.settings(conf)

    def behind(app: WsgiApp) -> WsgiApp:
        return middleware.pipeline(app, service="compute", settings=options, auth=auth, policy=policy)

    compute = compute_app(ground.world(), policy, auth_uri=auth_uri(conf), behind=behind)
    return mounted({"compute": compute}, lambda: True, otherwise=compute)
