"""Each line says when, who and for which request; what only oslo.log can do is left to oslo.log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import clock, log
from kilonova.core.context import Context, preserved


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in ("urllib3", "keystonemiddleware", "sqlalchemy")}
    with preserved():
        yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    for handler in before:
        root.addHandler(handler)
    root.setLevel(level)
    for name, old in levels.items():
        logging.getLogger(name).setLevel(old)
    logging.captureWarnings(False)


def written(tmp_path: Path, **options: Any) -> Path:
    """Set up logging into a file and answer it."""
    path = tmp_path / "x.log"
    log.setup(load(overrides={"log_file": str(path), **options}, warn=False), "kilonova")
    return path


def text_of(path: Path) -> str:
    """What was logged until now; lines below ERROR wait a moment for the writer."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    return path.read_text()


def test_lines_are_written_by_themselves_and_errors_at_once(tmp_path: Path) -> None:
    path = written(tmp_path)
    logging.getLogger("some.room").info("first")
    for _ in range(100):
        if path.read_text():
            break
        clock.sleep(0.02)
    assert path.read_text().endswith("first\n")
    logging.getLogger("some.room").error("second")
    assert path.read_text().endswith("second\n")


def test_a_line_has_time_process_level_service_logger_ids_and_message(tmp_path: Path) -> None:
    path = written(tmp_path)
    ctx = Context(user_id="u1", project_id="p1", global_request_id="req-11111111-1111-1111-1111-111111111111")
    before = log.enter("compute")
    logging.getLogger("some.room").warning("three %s", "words")
    log.leave(before)
    expected = (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ WARNING compute some\.room "
        rf"\[{ctx.global_request_id} {ctx.request_id} u1 p1\] three words\n"
    )
    assert re.fullmatch(expected, text_of(path))


def test_work_outside_a_request_has_a_dash_and_the_process_as_service(tmp_path: Path) -> None:
    path = written(tmp_path)
    from oslo_context import context as oslo

    if oslo.get_current() is not None:
        del oslo._request_store.context
    logging.getLogger("some.room").info("words")
    assert " INFO kilonova some.room [-] words" in text_of(path)


def test_every_line_of_a_traceback_has_the_ids(tmp_path: Path) -> None:
    path = written(tmp_path)
    ctx = Context(user_id="u1")
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("x").exception("failed")
    lines = text_of(path).splitlines()
    assert "ValueError: boom" in lines[-1]
    assert all(ctx.request_id in line for line in lines)


@pytest.mark.parametrize(("debug", "count"), [(True, 1), (False, 0)])
def test_debug_lines_only_where_asked_for(tmp_path: Path, debug: bool, count: int) -> None:
    path = written(tmp_path, debug=debug)
    logging.getLogger("some.room").debug("detail")
    assert text_of(path).count("detail") == count


def test_the_level_of_a_library_is_the_configured_one(tmp_path: Path) -> None:
    path = written(tmp_path, default_log_levels=["keystonemiddleware=ERROR"])
    logging.getLogger("keystonemiddleware.auth_token").warning("noise")
    assert text_of(path) == ""


@pytest.mark.parametrize(
    "option", [{"use_json": True}, {"logging_default_format_string": "%(message)s"}, {"log_rotation_type": "size"}]
)
def test_what_only_oslo_log_can_do_is_done_by_it(option: dict[str, Any]) -> None:
    assert log._wants_oslo_log(load(warn=False)) is False
    conf = load(warn=False)
    for name, value in option.items():
        conf.set_override(name, value)
    assert log._wants_oslo_log(conf) is True
