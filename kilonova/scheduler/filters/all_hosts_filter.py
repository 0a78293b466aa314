"""AllHostsFilter: every host passes."""

from kilonova.scheduler.plugins import Filter

FILTER = Filter("AllHostsFilter", lambda _request: None)
