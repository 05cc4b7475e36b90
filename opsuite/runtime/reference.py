"""The reference runtime: a whole executorch program, its Core ML delegates run by the ML Program interpreter."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from opsuite.exits import OpsuiteError
from opsuite.registry import unknown
from opsuite.runtime import coreml_delegate, kernels, mil
from opsuite.runtime.mil.rounding import Precision
from opsuite.runtime.native import ExecutionError
from opsuite.runtime.pte_values import Values

MAX_INSTRUCTIONS = 10_000_000
"""A run of more instructions is taken for one that never ends."""


class ReferenceProgram:
    """A program, read once, that runs any number of times. Each run starts from the buffers in the file.

    Args:
        pte: the program.
        precision: see `mil.Model`.

    Raises:
        ExecutionError: it cannot be read.
    """

    def __init__(self, pte: bytes, precision: Precision = "storage") -> None:
        from executorch.exir._serialize._program import deserialize_pte_binary

        # The file's identifier follows its first offset. The deserializer takes anything for a program.
        if pte[4:6] != b"ET":
            raise ExecutionError("the program cannot be read: it is not one of executorch's")
        try:
            self._file = deserialize_pte_binary(pte)
        except Exception as error:
            # The deserializer trusts its input: what it raises depends on where it stumbles.
            raise ExecutionError(f"the program cannot be read: {type(error).__name__}: {error}") from error
        if not self._file.program.execution_plan:
            raise ExecutionError("the program cannot be read: it has no methods")
        self._precision = precision
        self._delegates: dict[tuple[str, int], coreml_delegate.CoreMLDelegate] = {}

    @property
    def methods(self) -> list[str]:
        return [plan.name for plan in self._file.program.execution_plan]

    def execute(
        self, inputs: tuple[Any, ...], method: str = "forward", report: mil.Report | None = None
    ) -> list[torch.Tensor]:
        """Runs a method; see `execute`. `report` gets the fp16 overflows of delegates."""
        plans = {plan.name: plan for plan in self._file.program.execution_plan}
        if method not in plans:
            raise ExecutionError(unknown("method", method, plans))
        plan = plans[method]
        values = Values(plan, self._file.program.constant_buffer, self._file.mutable_data or [])
        leaves = pytree.tree_leaves(inputs)
        if len(leaves) != len(plan.inputs):
            raise ExecutionError(f"method {method!r} takes {len(plan.inputs)} inputs, not {len(leaves)}")
        for index, leaf in zip(plan.inputs, leaves, strict=True):
            # A kernel may change an input; the caller's stays as it is.
            values[index] = leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
        try:
            self._run(plan, values, mil.Report() if report is None else report)
            outputs = [values[index] for index in plan.outputs]
        except OpsuiteError as error:
            raise ExecutionError(str(error)) from error
        return [torch.as_tensor(value) for value in pytree.tree_leaves(outputs) if value is not None]

    def _run(self, plan: Any, values: Values, report: mil.Report) -> None:
        budget = MAX_INSTRUCTIONS
        for chain in plan.chains:
            at = 0
            while at < len(chain.instructions):
                budget -= 1
                if budget < 0:
                    raise OpsuiteError(f"method {plan.name!r} has not ended after {MAX_INSTRUCTIONS} instructions")
                at = self._step(plan, chain.instructions[at].instr_args, at, values, report)

    def _step(self, plan: Any, instruction: Any, at: int, values: Values, report: mil.Report) -> int:
        """Runs one instruction; gives the number of the next one."""
        kind = type(instruction).__name__
        if kind == "KernelCall":
            operator = plan.operators[instruction.op_index]
            try:
                kernels.call(operator.name, operator.overload, instruction.args, values)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                detail = str(error).strip().split("\n")[0]
                raise OpsuiteError(f"{operator.name}.{operator.overload}: {detail}") from error
        elif kind == "DelegateCall":
            delegate = self._delegate(plan, instruction.delegate_index)
            count = len(delegate.inputs)
            arguments = [values[index] for index in instruction.args[:count]]
            results = delegate.run(arguments, report)
            targets = instruction.args[count:]
            if len(targets) != len(results):
                raise OpsuiteError(f"the delegate gives {len(results)} outputs, the program wants {len(targets)}")
            for index, result in zip(targets, results, strict=True):
                values.store(index, result)
        elif kind == "MoveCall":
            values[instruction.move_to] = values[instruction.move_from]
        elif kind == "JumpFalseCall":
            if not bool(values[instruction.cond_value_index]):
                return int(instruction.destination_instruction)
        elif kind == "FreeCall":
            values.free(instruction.value_index)
        else:
            raise OpsuiteError(f"an instruction of kind {kind}, which is not known here")
        return at + 1

    def _delegate(self, plan: Any, index: int) -> coreml_delegate.CoreMLDelegate:
        key = (plan.name, index)
        if key not in self._delegates:
            delegate = plan.delegates[index]
            if delegate.id != coreml_delegate.NAME:
                raise OpsuiteError(f"delegate {delegate.id!r}; the reference runs {coreml_delegate.NAME!r} only")
            processed = self._file.program.backend_delegate_data[delegate.processed.index].data
            self._delegates[key] = coreml_delegate.CoreMLDelegate(
                bytes(processed), self._named_data, plan.name, self._precision
            )
        return self._delegates[key]

    def _named_data(self, key: str) -> bytes:
        store = self._file.named_data
        if store is None or key not in store.pte_data:
            raise OpsuiteError(f"the program has no named data {key!r}")
        return bytes(store.buffers[store.pte_data[key].buffer_index])


def execute(
    pte: bytes, inputs: tuple[Any, ...], method: str = "forward", precision: Precision = "storage"
) -> list[torch.Tensor]:
    """Runs a method of a program.

    Args:
        pte: the program.
        inputs: the method's positional arguments, possibly nested; flattened in `torch.utils._pytree`'s order.
        method: its name.
        precision: see `mil.Model`.

    Returns:
        Its outputs as tensors of the planned types and shapes: numbers as rank-0 tensors.

    Raises:
        ExecutionError: the program cannot be read or run; the message names the operation.
    """
    return ReferenceProgram(pte, precision).execute(inputs, method)
