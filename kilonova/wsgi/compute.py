"""`application`: the Compute API, for gunicorn, uWSGI and the like."""

from __future__ import annotations

from typing import Any

from kilonova.wsgi.lazy import Lazy, WsgiApp


def _build(conf: Any) -> WsgiApp:
    from kilonova.wiring.compute_api import api_app

    return api_app(conf)


application = Lazy("api", _build)
