"""What the stages of one case hand on to each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opsuite.pipeline.delegation import Delegation

if TYPE_CHECKING:
    import torch

    from opsuite.cases.case import Built
    from opsuite.flows.flow import Flow
    from opsuite.results.record import OutputAccuracy


@dataclass
class Sample:
    """One set of inputs, and what the float model and the converted program make of it.

    Outputs are flat lists of tensors, in the order of `torch.utils._pytree`.
    """

    inputs: tuple[Any, ...]
    float_outputs: list[torch.Tensor] = field(default_factory=list)
    converted_outputs: list[torch.Tensor] | None = None


@dataclass
class State:
    """Filled by the stages in their order; a stage reads only what an earlier one has set."""

    built: Built
    flow: Flow
    runtime: str
    seconds: dict[str, float] = field(default_factory=dict)

    calibration: Sample | None = None
    test: Sample | None = None
    quantized_nodes: int | None = None
    qdq_nodes: int | None = None
    program: Any = None
    exported: Any = None
    edge: Any = None
    delegation: Delegation | None = None
    executorch_program: Any = None
    pte: bytes | None = None
    outputs: list[torch.Tensor] | None = None
    spoke: str | None = None
    unverified: str | None = None
    quantization: list[OutputAccuracy] = field(default_factory=list)
    accuracy: list[OutputAccuracy] = field(default_factory=list)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Adds the seconds of the block to `seconds[step]`, also when it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start


StageFunction = Callable[[State], None]
