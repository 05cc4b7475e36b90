"""Stage export: torch.export of the float module, or of the converted one."""

from __future__ import annotations

import torch

from opsuite.pipeline.state import State
from opsuite.pipeline.tensors import copied


def run(state: State) -> None:
    """Sets `exported`. Strict, as the peer's suite exports."""
    state.exported = torch.export.export(
        state.program if state.program is not None else state.built.module,
        copied(state.built.inputs),
        dynamic_shapes=state.built.dynamic_shapes,
        strict=True,
    )
