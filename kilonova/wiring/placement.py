"""Placement as a process of its own, or as a WSGI callable for another HTTP server."""

from __future__ import annotations

from typing import Any

from kilonova.conf import databases
from kilonova.http import middleware
from kilonova.http.auth import Auth, Authenticates
from kilonova.http.noauth import NOAUTH, NoAuth, NoAuthElsewhere, is_loopback
from kilonova.http.server import HttpServer
from kilonova.placement import app as placement
from kilonova.placement.policy import make_policy
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.placement.world import settings as placement_settings
from kilonova.sql.engine import Database
from kilonova.sql.shared_clock import SharedClock
from kilonova.wiring.broker import NeedsSetting
from kilonova.wiring.metrics import meters
from kilonova.wiring.parts import Cloud, WsgiApp, mounted
from kilonova.wiring.www_authenticate import auth_uri


def placement_app(conf: Any, room: Database | None = None) -> WsgiApp:
    """Placement as a WSGI callable, at the root and below `/placement`. conf: of the application `placement`.

    room: its database, prepared; without it, it is opened, and its clock is the process's from now on.
    """
    if room is None:
        room = _prepared(conf)
        SharedClock(room).start()
    policy = make_policy(placement.OPS, conf)
    counted = meters(conf)
    app = placement.make_app(
        room, placement_settings(conf.placement), policy=policy, auth_uri=auth_uri(conf), meters=counted
    )
    auth: Authenticates = NoAuth() if conf.api.auth_strategy == NOAUTH else Auth(conf)
    options = middleware.settings(conf, meters=counted)
    inner = middleware.pipeline(app, service="placement", settings=options, auth=auth, policy=policy)
    return mounted({"placement": inner}, lambda: True, otherwise=inner, meters=counted)


def capacity(conf: Any, host: str, port: int) -> Cloud:
    """The Placement service."""
    if not conf.placement_database.connection:
        raise NeedsSetting(group="placement_database", name="connection")
    if conf.api.auth_strategy == NOAUTH and not is_loopback(host):
        raise NoAuthElsewhere(address=host)
    room = _prepared(conf)
    return Cloud(
        f"http://{host}:{port}", [SharedClock(room)], [room], HttpServer(placement_app(conf, room), host, port)
    )


def _prepared(conf: Any) -> Database:
    room = databases.open_database(conf, "placement_database")
    prepare_placement(room)
    return room
