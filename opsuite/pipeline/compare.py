"""Stage compare: each output against the converted program, and against float."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsuite.pipeline.accuracy import Accuracy, disagreement, dtype_name, measure
from opsuite.pipeline.state import Sample, State
from opsuite.results.record import OutputAccuracy

if TYPE_CHECKING:
    import torch


class OutputMismatchError(AssertionError):
    """An output has the wrong shape or dtype, or departs from its reference by more than the flow accepts."""


def run(state: State) -> None:
    """Sets `accuracy`. Raises OutputMismatchError, naming each output that is wrong and how."""
    assert state.test is not None and state.outputs is not None
    reference = state.test.converted_outputs or state.test.float_outputs
    if len(state.outputs) != len(reference):
        raise OutputMismatchError(f"{len(state.outputs)} outputs instead of {len(reference)}")
    state.accuracy = [
        _output(index, actual, state.test.converted_outputs, state.test.float_outputs)
        for index, actual in enumerate(state.outputs)
    ]
    wrong = [
        f"output {index}: {reason}"
        for index, (actual, expected) in enumerate(zip(state.outputs, reference, strict=True))
        if (reason := disagreement(actual, expected, state.flow.thresholds))
    ]
    if wrong:
        raise OutputMismatchError("; ".join(wrong))


def quantization_error(sample: Sample) -> list[OutputAccuracy]:
    """The converted program against float on one sample: what quantization alone costs."""
    return [
        _output(index, converted, None, sample.float_outputs)
        for index, converted in enumerate(sample.converted_outputs or [])
    ]


def _output(
    index: int, actual: torch.Tensor, converted: list[torch.Tensor] | None, floats: list[torch.Tensor]
) -> OutputAccuracy:
    return OutputAccuracy(
        output=index,
        shape=list(actual.shape),
        dtype=dtype_name(actual),
        against_converted=_accuracy(actual, converted, index),
        against_float=_accuracy(actual, floats, index),
    )


def _accuracy(actual: torch.Tensor, references: list[torch.Tensor] | None, index: int) -> Accuracy | None:
    if references is None or index >= len(references) or actual.shape != references[index].shape:
        return None
    return measure(actual, references[index])
