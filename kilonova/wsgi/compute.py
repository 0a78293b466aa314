"""`application`: The Compute API, for gunicorn, uWSGI and the like."""

from kilonova.wiring.compute_api import api_app
from kilonova.wsgi.lazy import Lazy, import_bus

import_bus()
application = Lazy("api", api_app)
