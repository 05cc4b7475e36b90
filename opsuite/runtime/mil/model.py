"""A loaded ML Program: predictions by name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from opsuite.registry import unknown
from opsuite.runtime.mil.errors import InputError, ProgramError
from opsuite.runtime.mil.interpreter import Interpreter, Report
from opsuite.runtime.mil.program import Function, NamedType, Operation, Program, StateType, TensorType
from opsuite.runtime.mil.reader import read_program
from opsuite.runtime.mil.rounding import Precision, kind_of, settle
from opsuite.runtime.mil.state import State

_SPEC_NAME = "model.mlmodel"
_WEIGHTS_NAME = "weights"


class Fp16OverflowWarning(RuntimeWarning):
    """Finite values became infinite because their declared type is fp16."""


class Model:
    """An ML Program that is ready to run. Make one with `load`.

    Args:
        program: the program.
        precision: "storage" rounds each value to its declared type, fp16 ones after they were computed in fp32;
            "fp32" does not round to fp16, which separates what quantization costs from what half precision costs.
    """

    def __init__(self, program: Program, precision: Precision = "storage") -> None:
        if precision not in ("storage", "fp32"):
            raise InputError(f"unknown precision {precision!r}; known: 'storage', 'fp32'")
        self.program = program
        self.precision = precision
        self._interpreters: dict[str, Interpreter] = {}

    @property
    def functions(self) -> list[str]:
        return list(self.program.functions)

    @property
    def inputs(self) -> dict[str, TensorType]:
        """The inputs of the default function, states left out."""
        return self.inputs_of(None)

    def inputs_of(self, function: str | None) -> dict[str, TensorType]:
        """The inputs of a function, states left out."""
        return inputs_of(self._function(function))

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of the default function."""
        return {each.name: each.type for each in self._function(None).outputs}

    def make_state(self, function: str | None = None) -> dict[str, State]:
        """Fresh states of a function, zeros, for `predict`."""
        return {
            each.name: State(each.type.wrapped, _zeros(each.type.wrapped, each.name))
            for each in self._function(function).inputs
            if isinstance(each.type, StateType)
        }

    def predict(
        self,
        inputs: Mapping[str, Any],
        function: str | None = None,
        state: dict[str, State] | None = None,
        report: Report | None = None,
    ) -> dict[str, Any]:
        """The outputs by name.

        Args:
            inputs: arrays, tensors or numbers by name. Integers and floats are converted to the declared type.
            function: which one to run; by default the program's default one.
            state: from `make_state`, kept between calls; by default fresh.
            report: gets the overflows; without one they are warned of.

        Returns:
            numpy arrays of the declared types; for classifiers also text and dictionaries.

        Raises:
            InputError: a name, shape or type does not fit.
            OpError: an operation refuses its operands.
        """
        body = self._function(function)
        values = self.run(inputs, function, state, report)
        return {each.name: _exported(values[each.name], each) for each in body.outputs}

    def run(
        self,
        inputs: Mapping[str, Any],
        function: str | None = None,
        state: dict[str, State] | None = None,
        report: Report | None = None,
        observer: Any = None,
    ) -> dict[str, Any]:
        """As `predict`, with values as they are carried between operations: float tensors for fp16."""
        chosen = self._function(function)
        values = _checked_inputs(chosen, inputs, self.precision)
        states = self.make_state(function) if state is None else state
        for each in chosen.inputs:
            if isinstance(each.type, StateType):
                if each.name not in states:
                    raise InputError(f"state {each.name!r} is missing; make_state() makes it")
                values[each.name] = states[each.name]
        noted = Report() if report is None else report
        outputs = self._interpreter(chosen).run(values, noted, observer)
        if report is None and noted.overflows:
            warnings.warn("; ".join(map(str, noted.overflows)), Fp16OverflowWarning, stacklevel=3)
        return dict(zip(chosen.body.outputs, outputs, strict=True))

    def trace(self, inputs: Mapping[str, Any], function: str | None = None) -> dict[str, Any]:
        """Every value that an operation makes, by name, in order; of a loop's body the last.

        Small constants are left out; tensors are those carried between operations.
        """
        seen: dict[str, Any] = {}

        def observe(operation: Operation, name: str, value: Any) -> None:
            if operation.type != "const":
                seen[name] = value

        self.run(inputs, function, observer=observe)
        return seen

    def _function(self, name: str | None) -> Function:
        chosen = self.program.default if name is None else name
        if chosen not in self.program.functions:
            raise InputError(unknown("function", chosen, self.program.functions))
        return self.program.functions[chosen]

    def _interpreter(self, function: Function) -> Interpreter:
        if function.name not in self._interpreters:
            self._interpreters[function.name] = Interpreter(function, self.precision)
        return self._interpreters[function.name]


def inputs_of(function: Function) -> dict[str, TensorType]:
    """The tensors that a function takes, by name."""
    return {each.name: each.type for each in function.inputs if isinstance(each.type, TensorType)}


def load(source: Any, precision: Precision = "storage", weights_dir: str | os.PathLike[str] | None = None) -> Model:
    """Loads an ML Program.

    Args:
        source: a `.mlpackage` directory or a `.mlmodel` file, an `MLModel`, a spec, or a serialized spec.
        precision: see `Model`.
        weights_dir: the directory of the weight files, for a spec or bytes.

    Raises:
        ProgramError: it cannot be read, or is no ML Program.
    """
    spec, found = _spec(source)
    directory = Path(weights_dir) if weights_dir is not None else found
    try:
        return Model(read_program(spec, directory), precision)
    except RecursionError as error:
        raise ProgramError("the program is nested too deeply") from error


def _spec(source: Any) -> tuple[Any, Path | None]:
    if isinstance(source, str | os.PathLike):
        return _from_path(Path(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return _parsed(bytes(source), "the bytes"), None
    if hasattr(source, "get_spec"):
        directory = source.weights_dir
        return source.get_spec(), Path(directory) if directory else None
    if hasattr(source, "WhichOneof") and hasattr(source, "mlProgram"):
        return source, None
    raise ProgramError(f"a {type(source).__name__} is no model: a path, an MLModel, a spec or bytes are")


def _from_path(path: Path) -> tuple[Any, Path]:
    if path.is_dir():
        found = sorted(path.glob(f"Data/*/{_SPEC_NAME}"))
        if not found:
            raise ProgramError(f"{path}: no Data/*/{_SPEC_NAME} in it, so no model package")
        path = found[0]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ProgramError(f"{path}: cannot be read: {error.strerror}") from error
    return _parsed(content, str(path)), path.parent / _WEIGHTS_NAME


def _parsed(content: bytes, where: str) -> Any:
    from coremltools.proto import Model_pb2
    from google.protobuf.message import DecodeError

    spec = Model_pb2.Model()
    try:
        spec.ParseFromString(content)
    except DecodeError as error:
        raise ProgramError(f"{where}: no model: {error}") from error
    return spec


def _zeros(type_: TensorType, name: str) -> torch.Tensor:
    if type_.shape is None or type_.count is None:
        raise ProgramError(f"state {name!r}: its shape {type_} is not known")
    return torch.zeros([size or 0 for size in type_.shape], dtype=type_.dtype.carrier)


def _checked_inputs(function: Function, inputs: Mapping[str, Any], precision: Precision) -> dict[str, Any]:
    declared = inputs_of(function)
    for name in inputs:
        if name not in declared:
            raise InputError(unknown("input", name, declared))
    missing = [name for name in declared if name not in inputs]
    if missing:
        raise InputError(f"missing input: {', '.join(missing)}")
    return {name: _input(inputs[name], type_, name, precision) for name, type_ in declared.items()}


def _input(value: Any, type_: TensorType, name: str, precision: Precision) -> torch.Tensor:
    try:
        tensor = value.detach() if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError) as error:
        raise InputError(f"input {name!r}: no array of numbers: {error}") from error
    if tensor.is_complex():
        raise InputError(f"input {name!r}: complex numbers, where {type_} is declared")
    if not type_.admits(tuple(tensor.shape)):
        raise InputError(f"input {name!r}: shape {list(tensor.shape)}, where {type_} is declared")
    dtype = type_.dtype
    if kind_of(tensor) == "float" and dtype.kind != "float":
        # Core ML itself hands over integers as floats; a fraction would be lost.
        if not bool((tensor == tensor.trunc()).all()):
            raise InputError(f"input {name!r}: fractions or NaN, where {type_} is declared")
        tensor = tensor.to(torch.int64)
    if dtype.kind == "int":
        low, high = dtype.limits
        tensor = tensor.to(torch.int64)
        if tensor.numel() and (int(tensor.min()) < low or int(tensor.max()) > high):
            raise InputError(f"input {name!r}: values outside {dtype}'s range")
    return settle(tensor.to(dtype.carrier), type_, precision)[0]


def _exported(value: Any, declared: NamedType) -> Any:
    if isinstance(value, torch.Tensor) and isinstance(declared.type, TensorType):
        dtype = declared.type.dtype
        # numpy has none of the small floats; they stay float32.
        if dtype.kind == "float" and dtype.name not in ("fp16", "fp32", "fp64"):
            return value.numpy(force=True)
        return value.to(dtype.storage).numpy(force=True)
    return value
