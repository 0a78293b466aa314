"""`application`: The metadata service, for gunicorn, uWSGI and the like."""

from kilonova.wiring.metadata import metadata_app
from kilonova.wsgi.lazy import Lazy, import_bus

import_bus()
application = Lazy("metadata", metadata_app)
