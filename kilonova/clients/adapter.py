"""A `Transport` as an adapter of the requests library, for keystoneauth and keystonemiddleware only.

Import it late: it brings in requests. Our own clients never come through here.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from kilonova.clients.rest import NoAnswer, Transport


class TransportAdapter(BaseAdapter):
    """Sends what a requests session prepared through a transport; `NoAnswer` becomes requests' ConnectionError."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        body = request.body.encode() if isinstance(request.body, str) else request.body
        headers = {str(name): _text(value) for name, value in request.headers.items()}
        try:
            status, answered, content = self._transport.send(str(request.method), str(request.url), headers, body)
        except NoAnswer as error:
            raise requests.ConnectionError(str(error), request=request) from error
        response = requests.Response()
        response.status_code = status
        response.headers = CaseInsensitiveDict(answered)
        response.url = str(request.url)
        response.request = request
        response.raw = io.BytesIO(content)
        response._content = content
        response.encoding = "utf-8"
        return response

    def close(self) -> None:
        """The transport belongs to whoever made it."""


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def session(transport: Transport) -> requests.Session:
    """A requests session whose every call goes through the transport; environment proxies are not looked at."""
    made = requests.Session()
    made.trust_env = False
    for prefix in ("http://", "https://"):
        made.mount(prefix, TransportAdapter(transport))
    return made
