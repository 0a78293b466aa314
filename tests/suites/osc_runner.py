"""Runs the tests that osc-placement has of its commands, against the service whose address is the first argument.

For the Python of the peers' environment, which has osc-placement; it prints what came of each test as a line of JSON.
Those tests want a Placement in their own process: what they import of it is exchanged for what stands here.
"""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any
from urllib.request import Request, urlopen

_FIXTURES = "placement.tests.functional.fixtures"


class Emptied:
    """An empty service for each test, which is asked to forget everything."""

    endpoint, token = "", "admin"

    def setUp(self) -> None:
        urlopen(Request(f"{self.endpoint}/empty", method="POST")).close()

    def cleanUp(self) -> None: ...

    def getDetails(self) -> dict[str, Any]:
        return {}


class Quiet(Emptied):
    """In the place of what collects the service's own log, which is elsewhere."""

    def setUp(self) -> None: ...


class Lines(unittest.TestResult):
    """One line for each test."""

    def addSuccess(self, test: unittest.TestCase) -> None:
        _say(test, "")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        _say(test, f"skipped: {reason}")

    def addError(self, test: unittest.TestCase, err: Any, details: Any = None) -> None:
        _say(test, _words(self, test, err, details))

    addFailure = addError


def _words(result: Any, test: unittest.TestCase, err: Any, details: Any) -> str:
    if details:
        return "\n".join(one.as_text() for one in details.values())
    kind: tuple[type[BaseException], BaseException, TracebackType] = err
    return str(result._exc_info_to_string(kind, test))


def _say(test: unittest.TestCase, wrong: str) -> None:
    print(json.dumps({"test": test.id(), "wrong": wrong}), file=sys.__stdout__, flush=True)


def _stand_in() -> None:
    parts = _FIXTURES.split(".")
    for count in range(1, len(parts) + 1):
        sys.modules[".".join(parts[:count])] = ModuleType(parts[count - 1])
    for name, members in {"placement": {"PlacementFixture": Emptied}, "capture": {"Logging": Quiet}}.items():
        module = ModuleType(name)
        vars(module).update(members)
        sys.modules[f"{_FIXTURES}.{name}"] = module
        setattr(sys.modules[_FIXTURES], name, module)


def main() -> None:
    """Run them all."""
    Emptied.endpoint = sys.argv[1]
    _stand_in()
    import osc_placement.tests.functional as package

    folder = Path(package.__path__[0])
    unittest.TestLoader().discover(str(folder), top_level_dir=str(folder.parents[2])).run(Lines())


if __name__ == "__main__":
    main()
