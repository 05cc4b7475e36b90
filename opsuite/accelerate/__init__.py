"""Make the installed ExecuTorch, Core ML Tools, torchao and torch lower faster, in place and with the same output.

import opsuite
opsuite.accelerate()                      # until the process ends, or .undo()
with opsuite.accelerate(without=["freeze-gc"]) as on:
    print(on)                             # what was applied, and what was left alone and why

pytest -p opsuite.accelerate ...          # for a test suite, its xdist workers included
"""

from __future__ import annotations

import sys
import types
from typing import Any

from opsuite.accelerate.pytest_hooks import pytest_addoption, pytest_configure, pytest_report_header, pytest_unconfigure
from opsuite.accelerate.switch import PARTS, Acceleration, PartStatus, accelerate, status, undo

__all__ = [
    "PARTS",
    "Acceleration",
    "PartStatus",
    "accelerate",
    "pytest_addoption",
    "pytest_configure",
    "pytest_report_header",
    "pytest_unconfigure",
    "status",
    "undo",
]


class _Callable(types.ModuleType):
    """The module is what users call and what pytest loads as a plugin, so it answers to both."""

    def __call__(self, *args: Any, **kwargs: Any) -> Acceleration:
        return accelerate(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
