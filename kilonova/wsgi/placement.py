"""`application`: Placement, for gunicorn, uWSGI and the like."""

from kilonova.wiring.placement import placement_app
from kilonova.wsgi.lazy import Lazy

application = Lazy("placement", placement_app, application="placement")
