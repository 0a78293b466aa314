"""Every workflow there is, for whoever runs an engine."""

from __future__ import annotations

from typing import Final

from kilonova.workflows.boot import BOOT
from kilonova.workflows.build import BUILD, BUILD_WITH_ACCELERATORS
from kilonova.workflows.delete import DELETE
from kilonova.workflows.power import POWER
from kilonova.workflows.recorder import ServerRecorder
from kilonova.workflows.step import Workflow
from kilonova.workflows.volumes import ATTACH, DETACH

WORKFLOWS: Final[tuple[Workflow, ...]] = (BOOT, BUILD, BUILD_WITH_ACCELERATORS, DELETE, POWER, ATTACH, DETACH)


def recorder() -> ServerRecorder:
    """The recorder that knows these workflows' actions."""
    return ServerRecorder({workflow.name: workflow.action for workflow in WORKFLOWS if workflow.action})
