"""`application`: Placement, for gunicorn, uWSGI and the like."""

from __future__ import annotations

from typing import Any

from kilonova.wsgi.lazy import Lazy, WsgiApp


def _build(conf: Any) -> WsgiApp:
    from kilonova.wiring.placement import placement_app

    return placement_app(conf)


application = Lazy("placement", _build, application="placement")
