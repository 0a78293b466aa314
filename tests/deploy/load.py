"""Builds and deletes by several users at once, who try again when a request fails, as clients do."""

from __future__ import annotations

import threading
import time
from typing import Any

from kilonova.clients.rest import NoAnswer
from tests.deploy.people import People
from tests.http.compute.cloud import Client
from tests.scenario.stage import image, network

USERS = 4
_AGAIN_FOR = 60.0  # seconds
_PASSING = (500, 502, 503, 504)


class Load:
    """`count` builds, begun by `start`; every second server is deleted again soon, whatever it is doing then.

    Every fifth has a volume made for it, which goes with it. pause: seconds between two builds of a user. refused:
    answers that no second try mended.
    """

    def __init__(self, people: People, count: int, pause: float = 0.0) -> None:
        self._people, self._count, self._pause = people, count, pause
        self._enough = threading.Event()
        self._image, self._network = image(people.demo), network(people.demo)
        self._threads = [threading.Thread(target=self._use, args=(number,), daemon=True) for number in range(USERS)]
        self._lock = threading.Lock()
        self.begun, self.refused, self.broken = 0, [], []  # type: ignore[var-annotated]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def reaches(self, count: int) -> None:
        """Wait until so many builds have begun."""
        while self.begun < count and any(thread.is_alive() for thread in self._threads):
            time.sleep(0.01)

    def enough(self) -> None:
        """Begin no more builds."""
        self._enough.set()

    def end(self) -> None:
        """Wait until all was asked for. AssertionError for a request that failed at every try."""
        for thread in self._threads:
            thread.join(2 * _AGAIN_FOR)
            assert not thread.is_alive()
        assert not self.refused
        assert not self.broken

    def _use(self, user: int) -> None:
        try:
            for number in range(user, self._count, USERS):
                if self._enough.wait(self._pause):
                    return
                made = self._create(number)
                with self._lock:
                    self.begun += 1
                if number % 2 and made is not None:
                    self._ask("DELETE", f"/servers/{made}", None, (204, 404))
        except BaseException as error:
            self.broken.append(repr(error))
            raise

    def _create(self, number: int) -> str | None:
        server: dict[str, Any] = {"name": f"s{number}", "flavorRef": "42", "networks": [{"uuid": self._network}]}
        if number % 5 == 0:
            server["block_device_mapping_v2"] = [{
                "boot_index": 0, "uuid": self._image, "source_type": "image", "destination_type": "volume",
                "volume_size": 1, "delete_on_termination": True,
            }]  # fmt: skip
        else:
            server["imageRef"] = self._image
        answer = self._ask("POST", "/servers", {"server": server}, (202,))
        return None if answer is None else str(answer["server"]["id"])

    def _ask(self, method: str, path: str, body: Any, wanted: tuple[int, ...]) -> Any:
        return patient(self._people.demo, method, path, body, wanted, self.refused)


def patient(
    client: Client, method: str, path: str, body: Any, wanted: tuple[int, ...], refused: list[Any] | None = None
) -> Any:
    """The document of the answer, after as many tries as it takes while services are away."""
    end = time.monotonic() + _AGAIN_FOR
    said: list[Any] = []
    while True:
        try:
            answer = client.ask(method, path, body)
        except NoAnswer as error:
            said.append(str(error))
        else:
            if answer.status in wanted:
                return answer.body
            said.append((answer.status, answer.body))
            if answer.status not in _PASSING:
                break
        if time.monotonic() > end:
            break
        time.sleep(0.3)
    (said if refused is None else refused).append((method, path, said))
    return None
