"""Stage execute: the lowered program on whatever here can run it."""

from __future__ import annotations

from opsuite.pipeline.state import State
from opsuite.pipeline.tensors import copied
from opsuite.runtime import native


def run(state: State) -> None:
    """Sets `outputs` and `spoke`, or `unverified` with the reason where nothing here can execute the program."""
    assert state.test is not None and state.pte is not None
    if state.runtime == "none":
        state.unverified = "the run was asked not to execute (--runtime none)"
        return
    plan = state.executorch_program.executorch_program.execution_plan[0]
    delegates = sorted({delegate.id for delegate in plan.delegates})
    missing = native.missing_delegates(delegates)
    if missing:
        state.unverified = f"no runtime here executes {', '.join(missing)}"
        return
    kernels = native.missing_kernels((op.name, op.overload) for op in plan.operators)
    if kernels:
        raise native.MissingKernelError(f"executorch has no kernel here for {', '.join(kernels)}")
    outputs = native.execute(state.pte, copied(state.test.inputs))
    # An input that the model writes into comes back as an output of the program, ahead of the model's own.
    state.outputs = outputs[_written_inputs(state) :]
    state.spoke = f"native:{state.flow.backend if delegates else 'portable'}"


def _written_inputs(state: State) -> int:
    from torch.export.graph_signature import OutputKind

    signature = state.executorch_program.exported_program().graph_signature
    return sum(spec.kind is OutputKind.USER_INPUT_MUTATION for spec in signature.output_specs)
