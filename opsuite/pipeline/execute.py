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
    state.outputs = native.execute(state.pte, copied(state.test.inputs))
    state.spoke = f"native:{state.flow.backend if delegates else 'portable'}"
