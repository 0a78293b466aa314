"""The Compute API as a process of its own, or as a WSGI callable for another HTTP server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kilonova.api.compute.app import make_app as compute_app
from kilonova.api.scheduler import app as scheduler_api
from kilonova.api.scheduler.policy import make_policy
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
    """The Compute API as a WSGI callable, at the root and below `/compute`; below `/scheduler` the scheduler's."""
    ground = ground or region(conf, for_clients=True)
    policy, scheduler_policy = Policy(compute_rules(), conf), make_policy(scheduler_api.OPS, conf)
    auth, world = Auth(conf), ground.world()
    options = middleware.settings(conf)

    def behind(service: str, rules: Policy) -> Callable[[WsgiApp], WsgiApp]:
        return lambda app: middleware.pipeline(app, service=service, settings=options, auth=auth, policy=rules)

    compute = compute_app(world, policy, auth_uri=auth_uri(conf), behind=behind("compute", policy))
    scheduler = scheduler_api.make_app(
        world, scheduler_policy, auth_uri=auth_uri(conf), behind=behind("scheduler", scheduler_policy)
    )
    return mounted({"compute": compute, "scheduler": scheduler}, lambda: True, otherwise=compute)
