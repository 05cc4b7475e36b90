"""Quantizer profile: consecutive `prepare_pt2e` calls in one process, with the patterns that each of them builds."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from opsuite.flows.coreml import static_int8_config
from opsuite.profiling.builds import counting_builds

Model = tuple[str, Callable[[], tuple[Any, tuple[Any, ...]]]]
"""A label, and what returns `(module, inputs)`."""


@dataclass(frozen=True)
class Call:
    """One `prepare_pt2e`.

    Attributes:
        model: which model was prepared.
        seconds: of the whole call.
        builds, build_seconds: patterns exported in the call, and the seconds that took.
        distinct: of those, how many differ by their arguments.
        new: of the distinct ones, how many no earlier call has built.
    """

    model: str
    seconds: float
    builds: int
    build_seconds: float
    distinct: int
    new: int

    @property
    def mean_build_seconds(self) -> float | None:
        return self.build_seconds / self.builds if self.builds else None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "mean_build_seconds": self.mean_build_seconds}


def _executorch() -> Any:
    from executorch.backends.apple.coreml.quantizer import CoreMLQuantizer

    return CoreMLQuantizer(static_int8_config())


def _opsuite() -> Any:
    from opsuite.quantizer import CoreMLQuantizer

    return CoreMLQuantizer(static_int8_config())


@contextmanager
def _cached() -> Iterator[None]:
    from opsuite.accelerate import accelerate

    with accelerate(["coreml-quantizer"]):
        yield


def _second_model() -> tuple[Any, tuple[Any, ...]]:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), (torch.randn(1, 4),)


SECOND_MODEL: Model = ("Linear + ReLU", _second_model)
"""Another model than the one that is profiled: does it build what the first one has built already?"""

QUANTIZERS: dict[str, tuple[Callable[[], Any], Callable[[], AbstractContextManager[None]]]] = {
    "opsuite": (_opsuite, nullcontext),
    "executorch": (_executorch, nullcontext),
    "executorch+cache": (_executorch, _cached),
}
"""What makes each quantizer, and the context that it is used in."""


def profile_quantizer(name: str, models: Sequence[tuple[str, Callable[[], tuple[Any, tuple[Any, ...]]]]]) -> list[Call]:
    """One call of `prepare_pt2e` for each (label, builder) of `models`, in this process, in order.

    The models are captured before the clock starts. Counts are of executorch's patterns: opsuite's quantizer, which
    exports none, has zeros.
    """
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    make, context = QUANTIZERS[name]
    seen: set[Hashable] = set()
    calls: list[Call] = []
    with context():
        for label, build in models:
            module, inputs = build()
            captured = torch.export.export(module.eval(), inputs, strict=True).module()
            with counting_builds() as builds:
                start = time.perf_counter()
                prepare_pt2e(captured, make())
                seconds = time.perf_counter() - start
            distinct = set(builds.keys)
            calls.append(
                Call(label, seconds, len(builds.keys), sum(builds.seconds), len(distinct), len(distinct - seen))
            )
            seen |= distinct
    return calls
