"""Where a 401 says that tokens come from; the option is keystonemiddleware's."""

from __future__ import annotations

from typing import Any


def auth_uri(conf: Any) -> str:
    """`[keystone_authtoken]www_authenticate_uri`, or nothing."""
    from keystonemiddleware import auth_token

    for group, options in auth_token.list_opts():
        conf.register_opts([option for option in options if option.dest == "www_authenticate_uri"], group=group)
    return str(conf.keystone_authtoken.www_authenticate_uri or "")
