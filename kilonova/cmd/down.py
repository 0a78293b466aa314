"""`kilonova down`: stop the cloud of a state directory and wait until it has stopped."""

from __future__ import annotations

import argparse

from kilonova.cmd import state_dir
from kilonova.cmd.cloud_process import look, stop
from kilonova.core import clock, errors


class DoesNotStop(errors.Conflict):
    code = "does_not_stop"
    message = "Process {pid} has not stopped in {seconds:g} seconds; `kill -9 {pid}` is safe, the next start repairs."


class StillStarting(errors.Conflict):
    code = "still_starting"
    message = "The cloud in {path} is starting and cannot be stopped yet: try again when it is ready."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    state_dir.configure(parser)
    parser.add_argument("--timeout", type=float, default=30, metavar="S", help="seconds to wait (default %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Stop it; a cloud that does not run is no error."""
    path = state_dir.chosen(arguments)
    deadline = clock.monotonic() + arguments.timeout
    cloud = look(path)
    while cloud.state == "starting" and clock.monotonic() < deadline:
        clock.sleep(0.1)
        cloud = look(path)
    if cloud.state == "stopped":
        print(f"No cloud runs in {path}")
        return 0
    if cloud.pid is None:
        raise StillStarting(path=str(path))
    if not stop(path, cloud.pid, timeout=max(0.0, deadline - clock.monotonic())):
        raise DoesNotStop(pid=cloud.pid, seconds=arguments.timeout)
    print(f"Stopped the cloud at {cloud.url}")
    return 0
