"""A flow: how a program is quantized and lowered, and to which backend."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opsuite.exits import Exit, OpsuiteError
from opsuite.pipeline.accuracy import Thresholds
from opsuite.registry import Registry


@dataclass(frozen=True)
class Requirement:
    """A module that a flow imports, and what installs it."""

    module: str
    install: str


def _no_partitioners() -> list[Any]:
    return []


def _edge_compile_config() -> Any:
    from executorch.exir import EdgeCompileConfig

    return EdgeCompileConfig(_check_ir_validity=False)


@dataclass(frozen=True)
class Flow:
    """How a case is lowered. Callables import what they need when they are called.

    Attributes:
        name: as the peer calls it.
        backend: the backend's short name.
        summary: one line for people.
        quantizer: makes a PT2E quantizer; None for a float flow.
        is_qat: whether the model is prepared for quantization-aware training.
        partitioners: makes the partitioners, in the order they are applied.
        compile_config: makes the `EdgeCompileConfig`.
        delegate: the backend's name in executorch's backend registry; None where nothing is delegated.
        deployment_target: the oldest OS the program is for (Core ML).
        requires: modules without which the flow is not available.
        probe: a further check; returns why the flow is not available, or None.
        thresholds: what the comparison accepts.
    """

    name: str
    backend: str
    summary: str
    quantizer: Callable[[], Any] | None = None
    is_qat: bool = False
    partitioners: Callable[[], list[Any]] = _no_partitioners
    compile_config: Callable[[], Any] = _edge_compile_config
    delegate: str | None = None
    deployment_target: str | None = None
    requires: tuple[Requirement, ...] = ()
    probe: Callable[[], str | None] | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def quantize(self) -> bool:
        return self.quantizer is not None

    def unavailable(self) -> str | None:
        """Why this environment cannot lower with the flow, and what to install; None where it can."""
        for requirement in self.requires:
            if not _importable(requirement.module):
                return f"needs the module {requirement.module}: {requirement.install}"
        return self.probe() if self.probe else None

    def require(self) -> Flow:
        """Returns itself. Raises OpsuiteError (exit 96) where the flow is not available."""
        reason = self.unavailable()
        if reason is not None:
            raise OpsuiteError(f"flow {self.name!r} is not available here: {reason}", Exit.ENVIRONMENT)
        return self


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


FLOWS: Registry[Flow] = Registry("flow")
