"""Processes of `kilonova`, each with the file that it writes to: started, awaited, stopped and killed by their id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_WITHIN = 90.0  # seconds, on a machine that has other things to do
END_WITHIN = 40.0
_COMMAND = [sys.executable, "-m", "kilonova.cmd.main"]


def command(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of `kilonova` to its end. environment: all its variables, where not the tests' own."""
    return subprocess.run([*_COMMAND, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment)


class Process:
    """One service. words: the command line after `kilonova`, or after `command`."""

    def __init__(
        self, name: str, words: Iterable[str], directory: Path, command: Sequence[str] = _COMMAND
    ) -> None:  # fmt: skip
        self.name, self._words, self._path = name, list(words), directory / f"{name}.out"
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._from = 0

    def start(self, **environment: str) -> None:
        """Start it; what it wrote before stays in its file. environment: variables beside those of the tests."""
        self._from = self._path.stat().st_size if self._path.exists() else 0
        with self._path.open("ab") as file:
            self._process = subprocess.Popen(
                [*self._command, *self._words], cwd=ROOT, stdout=file, stderr=file, env={**os.environ, **environment}
            )

    def more(self, *words: str) -> None:
        """Further words of its command line."""
        self._words += words

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        """What it has written since it was started last."""
        with self._path.open("rb") as file:
            file.seek(self._from)
            return file.read().decode()

    @property
    def code(self) -> int | None:
        """Its exit code, when it has ended."""
        assert self._process is not None
        return self._process.poll()

    @property
    def ready(self) -> bool:
        """Whether it has said so."""
        return "ready: " in self.output

    def says(self, words: str, within: float = START_WITHIN) -> None:
        """Wait until it has written this."""
        end = time.monotonic() + within
        while words not in self.output:
            assert self.code is None, f"{self.name} ended with {self.code}: {self.output[-2000:]}"
            assert time.monotonic() < end, f"{self.name} does not say “{words}” but: {self.output[-2000:]}"
            time.sleep(0.02)

    def ends(self, within: float = END_WITHIN) -> int:
        """Its exit code, once it has ended."""
        assert self._process is not None
        return self._process.wait(within)

    def terminate(self) -> None:
        """SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9, and gone."""
        self._signal(signal.SIGKILL)
        self.ends()

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)


def end(processes: Iterable[Process]) -> dict[str, int]:
    """Stop all at once and see them end; the exit code of each. One that does not end is killed: -9."""
    found = list(processes)
    for process in found:
        process.go_on()
        process.terminate()
    codes = {}
    for process in found:
        with suppress(subprocess.TimeoutExpired):
            process.ends()
        process.kill()
        codes[process.name] = process.ends()
    return codes
