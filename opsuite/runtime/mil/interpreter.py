"""Runs a function: its operations in order, each value settled to its declared type and freed after its last use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

import opsuite.runtime.mil.ops  # noqa: F401  (registers the operations)
from opsuite.exits import OpsuiteError, in_short
from opsuite.runtime.mil.errors import OpError, ProgramError
from opsuite.runtime.mil.program import Block, Constant, Function, Operation
from opsuite.runtime.mil.registry import Call, Implementation, lookup
from opsuite.runtime.mil.rounding import Precision, constant, settle

Observer = Callable[[Operation, str, Any], None]
"""Gets every operation's outputs by name as they are made."""


@dataclass(frozen=True)
class Overflow:
    """An operation of which `count` finite elements became infinite in fp16."""

    operation: str
    output: str
    count: int

    def __str__(self) -> str:
        return f"{self.operation} {self.output!r}: {self.count} values overflow fp16"


@dataclass
class Report:
    """What a run notes besides its results."""

    overflows: list[Overflow] = field(default_factory=list)


@dataclass(frozen=True)
class _Name:
    """An operand that is looked up when the operation runs."""

    name: str


@dataclass(frozen=True)
class _Step:
    operation: Operation
    implementation: Implementation
    fixed: dict[str, Any]
    looked_up: tuple[tuple[str, tuple[Any, ...]], ...]
    frees: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class _Plan:
    steps: tuple[_Step, ...]
    known: dict[str, Any]


class Interpreter:
    """A function, prepared for running.

    Args:
        function: the function.
        precision: "storage" rounds each value to its declared type; "fp32" does not round to fp16.

    Raises:
        UnknownOpError: an operation is not implemented.
        ProgramError: an operation has operands that it does not take, or lacks one.
    """

    def __init__(self, function: Function, precision: Precision = "storage") -> None:
        self.function = function
        self.precision = precision
        self._plans: dict[int, _Plan] = {}
        self._prepare(function.body, {}, f"function {function.name!r}")

    def run(
        self, inputs: dict[str, Any], report: Report, observer: Observer | None = None, seed: int = 0
    ) -> tuple[Any, ...]:
        """The outputs, in order.

        Args:
            inputs: settled values by name, all of those that the function declares.
            report: gets the overflows.
            observer: see `Observer`.
            seed: of random operations that have none of their own.
        """
        run = _Run(self, report, observer, torch.Generator().manual_seed(seed))
        return run.block(self.function.body, dict(inputs))

    def plan(self, block: Block) -> _Plan:
        return self._plans[id(block)]

    def _prepare(self, block: Block, known: dict[str, Any], where: str) -> None:
        known = dict(known)
        last_use = _last_uses(block)
        steps: list[_Step] = []
        for index, operation in enumerate(block.operations):
            place = f"{where}, {operation.label}"
            found = lookup(operation.type, self.function.opset, place)
            if operation.type == "const" and "val" in operation.attributes and len(operation.outputs) == 1:
                value = operation.attributes["val"]
                if not value.in_file:
                    known[operation.outputs[0].name] = self._settled(value, operation, place)
                    continue
            for nested in operation.blocks:
                self._prepare(nested, known, place)
            fixed, looked_up = _bind(operation, found, known, place)
            frees = tuple(name for name, last in last_use.items() if last == index and name not in known)
            steps.append(_Step(operation, found, fixed, looked_up, frees, place))
        self._plans[id(block)] = _Plan(tuple(steps), known)

    def _settled(self, value: Constant, operation: Operation, where: str) -> Any:
        try:
            return settle(constant(value), operation.outputs[0].type, self.precision)[0]
        except OpError as error:
            raise ProgramError(f"{where}: {error}") from error


class _Run:
    """One run of a function."""

    def __init__(
        self, interpreter: Interpreter, report: Report, observer: Observer | None, generator: torch.Generator
    ) -> None:
        self._interpreter = interpreter
        self._report = report
        self._observer = observer
        self._generator = generator

    def block(self, block: Block, values: dict[str, Any]) -> tuple[Any, ...]:
        """Runs a block; `values` has its inputs and what is visible from outside, and is used up."""
        plan = self._interpreter.plan(block)
        for step in plan.steps:
            self._step(step, values)
            for name in step.frees:
                values.pop(name, None)
        return tuple(plan.known[name] if name in plan.known else values[name] for name in block.outputs)

    def _step(self, step: _Step, values: dict[str, Any]) -> None:
        operation = step.operation
        try:
            arguments = dict(step.fixed)
            for name, operands in step.looked_up:
                found = [values[each.name] if isinstance(each, _Name) else each for each in operands]
                parameter = step.implementation.parameters[name]
                arguments[name] = _converted(parameter.convert, found if parameter.variadic else found[0], name)
            if step.implementation.takes_call:
                arguments["call"] = Call(operation, self._nested(values), self._rounds, self._generator)
            results = step.implementation.function(**arguments)
            del arguments
            outputs = results if isinstance(results, tuple) else (results,)
            if len(outputs) != len(operation.outputs):
                raise OpError(f"{len(operation.outputs)} outputs declared, {len(outputs)} computed")
            for declared, value in zip(operation.outputs, outputs, strict=True):
                settled, overflows = settle(value, declared.type, self._interpreter.precision)
                if overflows:
                    self._report.overflows.append(Overflow(operation.type, declared.name, overflows))
                values[declared.name] = settled
                if self._observer is not None:
                    self._observer(operation, declared.name, settled)
        except OpError as error:
            # One from a nested block says already where it was.
            if error.is_placed:
                raise
            raise OpError(f"{step.where}: {error}", is_placed=True) from error
        except OpsuiteError:
            raise
        except Exception as error:
            # What torch says of operands that do not fit; the traceback is of our code, not of the user's.
            raise OpError(f"{step.where}: {in_short(error)}", is_placed=True) from error

    @property
    def _rounds(self) -> bool:
        return self._interpreter.precision == "storage"

    def _nested(self, values: dict[str, Any]) -> Callable[[Block, tuple[Any, ...]], tuple[Any, ...]]:
        def run(block: Block, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            if len(block.inputs) != len(inputs):
                raise OpError(f"a nested block takes {len(block.inputs)} values, not {len(inputs)}")
            names = [each.name for each in block.inputs]
            return self.block(block, {**values, **dict(zip(names, inputs, strict=True))})

        return run


def _bind(
    operation: Operation, found: Implementation, known: dict[str, Any], where: str
) -> tuple[dict[str, Any], tuple[tuple[str, tuple[Any, ...]], ...]]:
    """Operands that are known beforehand, converted, and those to look up."""
    operands: dict[str, tuple[Any, ...]] = dict(operation.inputs)
    for name, value in operation.attributes.items():
        if name != "name" and name in found.parameters:
            operands.setdefault(name, (value,))
    for name, parameter in found.parameters.items():
        if parameter.required and name not in operands:
            raise ProgramError(f"{where}: lacks its operand {name!r}")
    fixed: dict[str, Any] = {}
    looked_up = []
    for name, bindings in operands.items():
        if name not in found.parameters:
            raise ProgramError(
                f"{where}: {operation.type} has no operand {name!r}; it has {', '.join(found.parameters)}"
            )
        parameter = found.parameters[name]
        if len(bindings) > 1 and not parameter.variadic:
            raise ProgramError(f"{where}: {len(bindings)} operands for {name!r}, which takes one")
        large = [isinstance(each, Constant) and each.in_file for each in bindings]
        if not any(large) and all(isinstance(each, Constant) or each in known for each in bindings):
            values = [constant(each) if isinstance(each, Constant) else known[each] for each in bindings]
            try:
                fixed[name] = _converted(parameter.convert, values if parameter.variadic else values[0], name)
            except OpError as error:
                raise ProgramError(f"{where}: {error}") from error
            continue
        looked_up.append((name, tuple(_operand(each, known) for each in bindings)))
    return fixed, tuple(looked_up)


def _operand(binding: Any, known: dict[str, Any]) -> Any:
    if isinstance(binding, Constant):
        return constant(binding)
    return known[binding] if binding in known else _Name(binding)


def _converted(convert: Callable[[Any], Any], value: Any, name: str) -> Any:
    try:
        return convert(value)
    except OpError as error:
        raise OpError(f"{name}: {error}") from error


def _last_uses(block: Block) -> dict[str, int]:
    """For every value that the block may free, the index of the last operation that uses it (or makes it, unused)."""
    own = {each.name for each in block.inputs}
    last: dict[str, int] = {}
    for index, operation in enumerate(block.operations):
        for each in operation.outputs:
            own.add(each.name)
            last[each.name] = index
        for name in _uses(operation):
            last[name] = index
    # What comes from outside belongs to the outer block, which still counts on it.
    return {name: index for name, index in last.items() if name in own and name not in block.outputs}


def _uses(operation: Operation) -> set[str]:
    names = {each for bindings in operation.inputs.values() for each in bindings if isinstance(each, str)}
    for block in operation.blocks:
        names.update(block.outputs)
        for each in block.operations:
            names |= _uses(each)
    return names
