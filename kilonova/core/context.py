"""Who asks: one context per request, kept by oslo.context in the thread so that every log line carries its ids."""

from __future__ import annotations

from typing import Any

from oslo_context import context as oslo


class Context(oslo.RequestContext):  # type: ignore[misc]
    """A request's identity and ids.

    `is_admin` here is what the policy rule `context_is_admin` says, filled in by `http.policy`; it never comes
    from the wire. Over the bus a context travels as the dictionary of `to_message`.
    """

    def to_message(self) -> dict[str, Any]:
        """The parts that another service needs: ids, names, roles; never the token."""
        return {
            "user_id": self.user_id,
            "project_id": self.project_id,
            "user_domain_id": self.user_domain_id,
            "project_domain_id": self.project_domain_id,
            "system_scope": self.system_scope,
            "roles": list(self.roles or ()),
            "service_roles": list(self.service_roles or ()),
            "is_admin": bool(self.is_admin),
            "request_id": self.request_id,
            "global_request_id": self.global_request_id,
        }

    def elevated(self) -> Context:
        """The same request with administrator's rights, for work the service does on its own account."""
        message = self.to_message()
        message["is_admin"] = True
        message["roles"] = sorted({*message["roles"], "admin"})
        return from_message(message, overwrite=False)


def from_message(message: dict[str, Any], *, overwrite: bool = True) -> Context:
    """The context of `to_message`; it becomes this thread's context unless `overwrite` is False."""
    known = {key: message.get(key) for key in (
        "user_id", "project_id", "user_domain_id", "project_domain_id", "system_scope", "roles", "service_roles",
        "is_admin", "request_id", "global_request_id")}  # fmt: skip
    return Context(overwrite=overwrite, **known)


def service_context(*, overwrite: bool = True) -> Context:
    """A context for work that no request asked for (periodic tasks, recovery)."""
    return Context(is_admin=True, roles=["admin"], overwrite=overwrite)


def current() -> Context | None:
    """This thread's context, if there is one."""
    found = oslo.get_current()
    return found if isinstance(found, Context) else None


class preserved:
    """`with preserved():` gives the thread its context back at the end, whatever ran inside."""

    def __enter__(self) -> None:
        self._before = oslo.get_current()

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._before.update_store()
        elif oslo.get_current() is not None:
            del oslo._request_store.context
