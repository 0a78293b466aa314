"""What `kilonova up` prints when the cloud is there: where it is and three lines that lead to a first server."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kilonova import __version__
from kilonova.cmd.client_files import FIRST_SERVER
from kilonova.cmd.state_dir import CLIENT
from kilonova.conf.all_in_one import AllInOne


def greeting(settings: AllInOne, base_url: str, seconds: float, *, detached: bool) -> list[str]:
    """The lines, the last of which begins with `ready`. `seconds` is how long the start took."""
    hypervisors = "1 simulated hypervisor" if settings.hosts == 1 else f"{settings.hosts} simulated hypervisors"
    stop = "`kilonova down`" if detached else "Ctrl-C"
    return [
        f"Kilonova {__version__} is at {base_url} with {hypervisors}.",
        "Guests are simulated: a server has its states, addresses and console log, but no machine runs in it.",
        f"Its files, with passwords and the log, are in {settings.state_dir}",
        *_reach(settings.host, base_url),
        "",
        "For a first server, paste into another terminal:" if not detached else "For a first server, paste:",
        *(f"  {line}" for line in first_server_lines(settings.state_dir, base_url)),
        "",
        f"ready after {seconds:.1f} s; {stop} stops it, and the next start finds everything as it was",
    ]


def _reach(host: str, base_url: str) -> list[str]:
    """What somebody has to know who listens on all addresses, so that clients elsewhere get through."""
    if host not in ("0.0.0.0", "::"):
        return []
    here = urlsplit(base_url).hostname
    return [
        f"It listens on all addresses, and its catalogue says {here}: for clients on other machines, start it with "
        "--host and the address by which they know this one."
    ]


def first_server_lines(state_dir: Path, base_url: str) -> tuple[str, str, str]:
    """Three shell lines: get the client, say which cloud, create a server."""
    flavor, image, network = FIRST_SERVER
    clouds = shlex.quote(str(state_dir / "clouds.yaml"))
    return (
        _get_client(state_dir),
        f"export OS_CLOUD=kilonova OS_CLIENT_CONFIG_FILE={clouds}{_around_proxy(base_url)}",
        f"openstack server create --flavor {flavor} --image {image} --network {network} --wait first",
    )


def _get_client(state_dir: Path) -> str:
    """From a checkout its `make client`, from an installed package an environment in the state directory."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "Makefile").is_file() and (checkout / "requirements-client.lock").is_file():
        root = shlex.quote(str(checkout))
        return f"make -C {root} client && . {root}/.venv-client/bin/activate"
    venv = shlex.quote(str(state_dir / CLIENT))
    return f"python3 -m venv {venv} && . {venv}/bin/activate && pip install -q python-openstackclient osc-placement"


def _around_proxy(base_url: str) -> str:
    """What to add to the environment so that a client that honours proxy variables reaches the cloud itself."""
    host = str(urlsplit(base_url).hostname)
    proxies = getproxies()
    if not proxies.keys() & {"http", "all"} or proxy_bypass(host):
        return ""
    exceptions = shlex.quote(",".join(filter(None, (host, proxies.get("no")))))
    return f" NO_PROXY={exceptions} no_proxy={exceptions}"
