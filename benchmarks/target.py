"""A cloud that is measured: how to log in, its compute and image APIs, and what its processes use.

Knows nothing of Kilonova: any OpenStack cloud on this machine can be a target. Standard library only.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MICROVERSION = "2.96"  # the newest that the peer knows
FLAVOR, IMAGE = "bench-nano", "bench-tiny"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Refused(Exception):
    """An answer that the benchmark cannot go on with."""


@dataclass(slots=True)
class Api:
    """One kept connection to one service. Not to be shared between threads or processes."""

    url: str
    token: str = ""
    version: str = f"compute {MICROVERSION}"
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def send(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Status, headers and body of one request. A broken connection is an OSError or HTTPException."""
        place = urlsplit(self.url)
        if self._connection is None:
            self._connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=300)
        headers = {"Accept": "application/json", "OpenStack-API-Version": self.version}
        if self.token:
            headers["X-Auth-Token"] = self.token
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            self._connection.request(method, place.path.rstrip("/") + path, data, headers)
            answer = self._connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = None
            raise

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer of a request that must succeed. Refused when it does not."""
        status, _, data = self.send(method, path, body)
        if status >= 300:
            raise Refused(f"{method} {self.url}{path}: {status} {data[:300]!r}")
        return json.loads(data) if data else None


@dataclass(frozen=True, slots=True)
class Target:
    """A cloud with somebody logged in as administrator. roots: the ids of its processes, without their children."""

    name: str
    token: str
    compute_url: str
    project: str
    flavor: str
    image: str
    roots: tuple[int, ...]

    def compute(self) -> Api:
        """A new connection to the compute API."""
        return Api(self.compute_url, self.token)

    def cpu(self) -> float:
        """Seconds of CPU that its processes have used so far."""
        return sum(process.cpu for process in family(self.roots))

    def rss(self) -> float:
        """Resident memory of its processes in MB (pages that several of them share count for each)."""
        return sum(process.rss for process in family(self.roots))


def log_in(name: str, login: dict[str, str], roots: Iterable[int]) -> Target:
    """A target by the OS_* variables of an administrator. Quotas are lifted, flavor and image made if need be."""
    auth_url = login["OS_AUTH_URL"].rstrip("/")
    token, found = issue_token(auth_url if auth_url.endswith("/v3") else f"{auth_url}/v3", login)
    urls = _public_urls(found["catalog"], login.get("OS_REGION_NAME"))
    compute, project = Api(urls["compute"], token), found["project"]["id"]
    quota = {"quota_set": {"instances": -1, "cores": -1, "ram": -1, "force": True}}
    compute.call("PUT", f"/os-quota-sets/{project}", quota)
    images = urls["image"].rstrip("/")
    image = _image(Api(images if images.endswith("/v2") else f"{images}/v2", token))
    return Target(name, token, urls["compute"], project, _flavor(compute), image, tuple(roots))


def openrc(path: Path) -> dict[str, str]:
    """The OS_* variables that a shell file exports."""
    found = {}
    for line in path.read_text().splitlines():
        words = shlex.split(line, comments=True)
        for word in words[1:] if words[:1] == ["export"] else words[:1]:
            name, equals, value = word.partition("=")
            if equals and name.startswith("OS_"):
                found[name] = value
    return found


def issue_token(url: str, login: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """A token and what it says, by the OS_* variables of a login. url: with its version. Refused."""

    def domain(kind: str) -> dict[str, str]:
        by_id = login.get(f"OS_{kind}_DOMAIN_ID")
        return {"id": by_id} if by_id else {"name": login.get(f"OS_{kind}_DOMAIN_NAME", "Default")}

    user = {"name": login["OS_USERNAME"], "password": login["OS_PASSWORD"], "domain": domain("USER")}
    asked = {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": login["OS_PROJECT_NAME"], "domain": domain("PROJECT")}},
    }
    status, headers, body = Api(url).send("POST", "/auth/tokens", {"auth": asked})
    if status != 201:
        raise Refused(f"{url} gives no token: {status} {body[:300]!r}")
    return str(headers["X-Subject-Token"]), json.loads(body)["token"]


def _public_urls(catalog: list[dict[str, Any]], region: str | None) -> dict[str, str]:
    return {
        service["type"]: endpoint["url"]
        for service in catalog
        for endpoint in service["endpoints"]
        if endpoint["interface"] == "public" and region in (None, endpoint["region"])
    }


def _flavor(compute: Api) -> str:
    for flavor in compute.call("GET", "/flavors")["flavors"]:
        if flavor["name"] == FLAVOR:
            return str(flavor["id"])
    wanted = {"name": FLAVOR, "vcpus": 1, "ram": 64, "disk": 0}
    return str(compute.call("POST", "/flavors", {"flavor": wanted})["flavor"]["id"])


def _image(images: Api) -> str:
    for image in images.call("GET", f"/images?name={IMAGE}")["images"]:
        if image["status"] == "active":
            return str(image["id"])
    wanted = {"name": IMAGE, "disk_format": "raw", "container_format": "bare", "visibility": "public"}
    made = str(images.call("POST", "/images", wanted)["id"])
    status, _, body = images.send("PUT", f"/images/{made}/file", bytes(1024), "application/octet-stream")
    if status != 204:
        raise Refused(f"the image cannot be uploaded: {status} {body[:300]!r}")
    return made


# -- processes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Process:
    """A line of /proc. cpu in seconds, rss in MB."""

    pid: int
    parent: int
    session: int
    cpu: float
    rss: float


def family(roots: Iterable[int]) -> list[Process]:
    """The processes, their descendants and whoever is in a session that one of the roots leads."""
    everybody = {process.pid: process for process in _processes()}
    wanted = set(roots)
    chosen = {pid for pid, process in everybody.items() if pid in wanted or process.session in wanted}
    grown = True
    while grown:
        more = {pid for pid, process in everybody.items() if process.parent in chosen} - chosen
        grown = bool(more)
        chosen |= more
    return [everybody[pid] for pid in chosen]


def pids_in(directory: Path) -> list[int]:
    """The ids that the *.pid files of a directory begin with."""
    words = [path.read_text().split()[:1] for path in sorted(directory.glob("*.pid"))]
    return [int(first) for word in words for first in word if first.isdigit()]


def busy_cores() -> tuple[float, float]:
    """(CPU seconds all processes of the machine used since boot, the number of cores)."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(numbers) - numbers[3] - numbers[4]) / _TICKS, float(os.cpu_count() or 1)


def _processes() -> Iterable[Process]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path("/proc", entry, "stat").read_text()
        except OSError:  # it has ended
            continue
        words = text.rpartition(")")[2].split()
        cpu = (int(words[11]) + int(words[12])) / _TICKS
        yield Process(int(entry), int(words[1]), int(words[3]), cpu, int(words[21]) * _PAGE / 2**20)
