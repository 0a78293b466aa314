"""`application`: the metadata service, for gunicorn, uWSGI and the like."""

from __future__ import annotations

from typing import Any

from kilonova.wsgi.lazy import Lazy, WsgiApp


def _build(conf: Any) -> WsgiApp:
    from kilonova.wiring.metadata import metadata_app

    return metadata_app(conf)


application = Lazy("metadata", _build)
