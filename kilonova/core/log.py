"""Log lines with the request's ids in each, in oslo.log's default shape at a quarter of its cost.

`setup` reads oslo.log's options; where an operator asks for something only oslo.log does (its own format strings,
JSON, syslog, journal, rotation, a logging configuration file) it hands over to oslo.log. Several services may share a
process: the one a thread works for stands in each line.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from collections import deque
from logging.handlers import WatchedFileHandler
from typing import Any

from oslo_context import context as oslo

_thread = threading.local()
_process_service = "kilonova"


def enter(service: str) -> str | None:
    """This thread works for the service now; answers what to give `leave`."""
    before = getattr(_thread, "service", None)
    _thread.service = service
    return before


def leave(before: str | None) -> None:
    """Back to what `enter` answered."""
    _thread.service = before


class LineFormatter(logging.Formatter):
    """`<time>.<ms> <pid> <LEVEL> <service> <logger> [<global id> <request id> <user> <project>] <message>`."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._second = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        stamp = self._second
        if stamp[0] != second:
            stamp = self._second = (second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second)))
        service = getattr(_thread, "service", None) or _process_service
        head = (
            f"{stamp[1]}.{int(record.msecs):03d} {self._pid} {record.levelname} {service} {record.name} "
            f"[{_identity()}] "
        )
        text = head + record.getMessage()
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            text += "\n" + "\n".join(head + line for line in record.exc_text.splitlines())
        return text


class LaterHandler(logging.Handler):
    """Formats at once and writes a little later, in a thread of its own and many lines at a time.

    Threads that log at the same moment would otherwise wait for each other around every write, which was a fifth of
    the time of a busy cloud. Lines wait `DELAY` seconds at most; from ERROR on nothing waits, and nothing is lost at a
    regular end. A killed process loses the last moment's lines.
    """

    DELAY = 0.05

    def __init__(self, target: WatchedFileHandler) -> None:
        super().__init__()
        self._target = target
        self._lines: deque[str] = deque()
        self._some = threading.Event()
        self._pause = threading.Event()  # never set: a wait that no simulated clock shortens
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        atexit.register(self.flush)

    def createLock(self) -> None:
        """No lock: appending to a deque is one step."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line; write it now when it is an error."""
        try:
            self._lines.append(self.format(record))
        except Exception:
            self.handleError(record)
            return
        if record.levelno >= logging.ERROR:
            self.flush()
        elif not self._some.is_set():
            self._some.set()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._some.wait()
            self._pause.wait(self.DELAY)
            self._some.clear()
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        with self._writing:
            waiting: list[str] = []
            while self._lines:
                waiting.append(self._lines.popleft())
            if waiting:
                self._target.reopenIfNeeded()
                if self._target.stream is not None:
                    self._target.stream.write("\n".join(waiting) + "\n")
                    self._target.stream.flush()

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self.flush()
        self._target.close()
        super().close()


def _identity() -> str:
    ctx = oslo.get_current()
    if ctx is None:
        return "-"
    return f"{ctx.global_request_id or 'None'} {ctx.request_id} {ctx.user_id or '-'} {ctx.project_id or '-'}"


def register(conf: Any) -> None:
    """Register oslo.log's options on a configuration object."""
    from oslo_log import log as oslo_log

    oslo_log.register_options(conf)


def setup(conf: Any, service: str) -> None:
    """Send log lines where the options say, replacing what was set up before. `conf` has oslo.log's options."""
    global _process_service
    _process_service = service
    if _wants_oslo_log(conf):
        from oslo_log import log as oslo_log

        oslo_log.setup(conf, service)
        return
    handlers: list[logging.Handler] = []
    path = _log_path(conf, service)
    if path is not None:
        handlers.append(LaterHandler(WatchedFileHandler(path, encoding="utf-8")))  # another program may rotate it
    if conf.use_stderr or path is None:
        handlers.append(logging.StreamHandler(sys.stderr))
    formatter = LineFormatter()
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    for handler in handlers:
        handler.setFormatter(formatter)
        root.addHandler(handler)
    root.setLevel(logging.DEBUG if conf.debug else logging.INFO)
    for pair in conf.default_log_levels:
        name, _, level = pair.partition("=")
        logging.getLogger(name).setLevel(level.strip().upper())
    logging.captureWarnings(True)
    # no line of ours shows caller, thread or process names: they are not looked up (logging HOWTO, Optimization)
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


_FORMATS = (
    "logging_context_format_string", "logging_default_format_string", "logging_debug_format_suffix",
    "logging_exception_prefix", "logging_user_identity_format", "log_date_format",
)  # fmt: skip


def _wants_oslo_log(conf: Any) -> bool:
    if conf.log_config_append or conf.use_json or conf.use_syslog or conf.use_journal:
        return True
    if conf.log_rotation_type != "none" or conf.rate_limit_interval:
        return True
    places = (conf.get_location(name) for name in _FORMATS)
    return any(place is not None and place.location.name not in ("opt_default", "set_default") for place in places)


def _log_path(conf: Any, service: str) -> str | None:
    if not conf.log_file and not conf.log_dir:
        return None
    return os.path.join(conf.log_dir or "", conf.log_file or f"{service}.log")
