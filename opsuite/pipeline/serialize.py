"""Stage serialize: memory planning and the .pte bytes."""

from __future__ import annotations

from opsuite.pipeline.state import State


def run(state: State) -> None:
    """Sets `executorch_program` and `pte`."""
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass

    config = ExecutorchBackendConfig(
        extract_delegate_segments=True, sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass()
    )
    state.executorch_program = state.edge.to_executorch(config)
    state.pte = state.executorch_program.buffer
