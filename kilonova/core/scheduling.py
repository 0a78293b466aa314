"""How scheduling fails: errors that the scheduler raises and whoever asked it (the conductor) knows.

None of them is an answer to an HTTP request: the conductor turns them into a server's fault.
"""

from __future__ import annotations

from kilonova.core.errors import Invalid


class NoValidHost(Invalid):
    """No host takes the request. reason: which stage or filter left none, in plain words."""

    code, message = "no_valid_host", "No valid host was found. {reason}"


class RequestFilterFailed(NoValidHost):
    """A request filter found that no host can be right, before Placement was asked."""

    code = "request_filter_failed"


class UnknownPlugin(Invalid):
    """The configuration names a filter or weigher that does not exist; the service does not start."""

    code, message = "unknown_plugin", "{option} names {name}, which is none of: {known}."
