"""Stage eager: the float model's own answers, taken before anything can change it."""

from __future__ import annotations

import torch

from opsuite.pipeline.state import Sample, State
from opsuite.pipeline.tensors import copied, flat_outputs, fresh


def run(state: State) -> None:
    """Sets `calibration` and `test`. Raises what the model raises."""
    state.calibration = _sample(state, state.built.inputs)
    state.test = _sample(state, fresh(state.built.inputs)) if state.built.fresh_inputs else state.calibration


def _sample(state: State, inputs: tuple) -> Sample:
    with torch.no_grad():
        outputs = state.built.module(*copied(inputs))
    return Sample(inputs, flat_outputs(outputs))
