"""The operations that the interpreter has: one function each, registered with the opsets that it speaks for.

A function's parameters are the op's, by Core ML's names, and their annotations say in which form it wants them:
`Tensor` as it is, `int`, `float`, `bool`, `str`, `Ints` and `Bools` out of constants, `Tensors` for variadic ones,
`Any` for values of other kinds. A first parameter `call` gets the `Call`: declared types and nested blocks.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Generator, Tensor

from opsuite.registry import unknown
from opsuite.runtime.mil.errors import OpError, UnknownOpError
from opsuite.runtime.mil.program import Block, Operation, TensorType

Ints = list[int]
Bools = list[bool]
Tensors = tuple[Tensor, ...]
Values = tuple[Any, ...]

OPSETS = ("CoreML5", "CoreML6", "CoreML7", "CoreML8", "CoreML9")
"""Those of iOS15, iOS16, iOS17, iOS18 and iOS26."""


def since(opset: str) -> tuple[str, ...]:
    """The opsets from that one on."""
    return OPSETS[OPSETS.index(opset) :]


def until(opset: str) -> tuple[str, ...]:
    """The opsets up to that one."""
    return OPSETS[: OPSETS.index(opset) + 1]


@dataclass(frozen=True)
class Call:
    """What an operation can ask about where it is used.

    Attributes:
        operation: the operation.
        run: runs a nested block with the values of its inputs; gives its outputs.
        half_is_rounded: whether fp16 values are rounded (precision "storage").
        generator: the source of random numbers of this run.
    """

    operation: Operation
    run: Callable[[Block, tuple[Any, ...]], tuple[Any, ...]]
    half_is_rounded: bool
    generator: Generator

    def declared(self, number: int = 0) -> TensorType:
        """The declared type of an output. Raises OpError unless it is a tensor's."""
        outputs = self.operation.outputs
        if number >= len(outputs) or not isinstance(outputs[number].type, TensorType):
            raise OpError(f"output {number} is not declared as a tensor")
        return typing.cast(TensorType, outputs[number].type)


@dataclass(frozen=True)
class Parameter:
    convert: Callable[[Any], Any]
    required: bool
    variadic: bool


@dataclass(frozen=True)
class Implementation:
    name: str
    function: Callable[..., Any]
    parameters: dict[str, Parameter]
    takes_call: bool


_OPS: dict[tuple[str, str], Implementation] = {}

F = typing.TypeVar("F", bound=Callable[..., Any])


def op(*names: str, opsets: tuple[str, ...] = OPSETS) -> Callable[[F], F]:
    """Registers a function as the operation of those names. Raises ValueError for one that an opset has already."""

    def register(function: F) -> F:
        parameters, takes_call = _parameters(function)
        for name in names:
            for opset in opsets:
                if (name, opset) in _OPS:
                    raise ValueError(f"op {name!r} of {opset} is registered twice")
                _OPS[name, opset] = Implementation(name, function, parameters, takes_call)
        return function

    return register


def lookup(name: str, opset: str, where: str) -> Implementation:
    """The operation of that name in that opset. Raises UnknownOpError, which names op, opset and place."""
    if opset not in OPSETS:
        raise UnknownOpError(f"{where}: {unknown('opset', opset, OPSETS)}")
    found = _OPS.get((name, opset))
    if found is None:
        others = [each for each in OPSETS if (name, each) in _OPS]
        hint = f"it is in {', '.join(others)}" if others else unknown("op", name, known(opset))
        raise UnknownOpError(f"{where}: op {name!r} is not implemented for opset {opset}: {hint}")
    return found


def known(opset: str) -> list[str]:
    """The names of an opset's operations, sorted."""
    return sorted(name for name, each in _OPS if each == opset)


def _parameters(function: Callable[..., Any]) -> tuple[dict[str, Parameter], bool]:
    hints = typing.get_type_hints(function)
    parameters = {}
    takes_call = False
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "call":
            takes_call = True
            continue
        hint = hints[name]
        # `X | None` is an optional X.
        options = [each for each in typing.get_args(hint) if each is not type(None)]
        if len(options) == 1 and type(None) in typing.get_args(hint):
            hint = options[0]
        required = parameter.default is inspect.Parameter.empty
        parameters[name] = Parameter(_CONVERTERS[hint], required, hint in (Tensors, Values))
    return parameters, takes_call


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise OpError(f"a tensor is wanted, not {type(value).__name__}")
    return value


def _one(value: Any) -> Any:
    tensor = _tensor(value)
    if tensor.numel() != 1:
        raise OpError(f"one number is wanted, not a tensor of shape {list(tensor.shape)}")
    return tensor.item()


def _int(value: Any) -> int:
    number = _one(value)
    if number != int(number):
        raise OpError(f"a whole number is wanted, not {number}")
    return int(number)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise OpError(f"text is wanted, not {type(value).__name__}")
    return value


def _ints(value: Any) -> list[int]:
    tensor = _tensor(value)
    if tensor.is_floating_point() or tensor.dim() > 1:
        raise OpError(f"a vector of integers is wanted, not {tensor.dtype} of shape {list(tensor.shape)}")
    return [int(each) for each in tensor.reshape(-1).tolist()]


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    Tensor: _tensor,
    Tensors: lambda values: tuple(_tensor(each) for each in values),
    Values: tuple,
    Any: lambda value: value,
    int: _int,
    float: lambda value: float(_one(value)),
    bool: lambda value: bool(_one(value)),
    str: _text,
    Ints: _ints,
    Bools: lambda value: [bool(each) for each in _ints(value)],
}
