"""How scheduling fails: errors that the scheduler raises and whoever asked it (the conductor) knows.

None of them is an answer to an HTTP request: the conductor turns them into a server's fault.
"""

from __future__ import annotations

from kilonova.core.errors import Invalid


class NoValidHost(Invalid):
    """No host takes the request. reason: what everybody may know. The detail `explanation`, where it is given: which
    stage or filter left none, for those who may see hosts.
    """

    code, message = "no_valid_host", "No valid host was found. {reason}"


class RequestFilterFailed(NoValidHost):
    """A request filter found that no host can be right, before Placement was asked."""

    code = "request_filter_failed"


class UnknownPlugin(Invalid):
    """The configuration names a filter or weigher that does not exist; the service does not start."""

    code, message = "unknown_plugin", "{option} names {name}, which is none of: {known}."


class PluginBroken(Invalid):
    """An installed filter, weigher or request filter cannot be used; the service does not start."""

    code, message = "plugin_broken", "{option} names {name}, which cannot be used: {reason}."


class UnsupportedPolicy(NoValidHost):
    """A server group's policy that nothing of the configuration keeps."""

    code = "unsupported_policy"
