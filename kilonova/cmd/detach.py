"""A process that goes on in the background once it is ready, while the one that was called returns."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from kilonova.core.errors import KilonovaError


def in_background(serve: Callable[[Callable[[], None]], int], output: Path) -> int:
    """Run `serve(become_ready)` in a process of its own; answers when it is ready (0) or has ended (its exit code).

    Until it calls `become_ready`, what it prints comes out here; afterwards it goes to the file `output`.
    To be called while the process has one thread.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _live_on(serve, writer, output)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as words:
            if words.read():  # ends when the child is ready (one byte), or has ended (nothing)
                return 0
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _live_on(serve: Callable[[Callable[[], None]], int], writer: int, output: Path) -> None:
    """The child: leave the terminal's session, serve, and end without returning to the caller's code."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def become_ready() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.write(writer, b"\n")
        os.close(writer)

    code = 1
    try:
        code = serve(become_ready)
    except KilonovaError as error:
        print(f"kilonova: {error.text}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
