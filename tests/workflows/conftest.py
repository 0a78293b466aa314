"""A cloud for one test, and a way to make others."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.register_assert_rewrite("tests.workflows.census", "tests.workflows.stories")

from tests.workflows.cloud import Cloud, new_cloud, quick_folder  # noqa: E402


@pytest.fixture
def clouds() -> Iterator[Callable[..., Cloud]]:
    """Make a cloud with options of its own; closed at the end."""
    made: list[Cloud] = []
    folder = quick_folder()

    def make(**options: Any) -> Cloud:
        made.append(new_cloud(folder / f"cloud-{len(made)}", **options))
        return made[-1]

    yield make
    for cloud in reversed(made):
        cloud.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cloud(clouds: Callable[..., Cloud]) -> Cloud:
    """Four hypervisors, the usual settings."""
    return clouds()
