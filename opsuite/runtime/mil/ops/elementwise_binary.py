"""Operations on the elements of two tensors, broadcast against each other."""

from __future__ import annotations

from collections.abc import Callable

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, op
from opsuite.runtime.mil.rounding import kind_of


def _plain(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    def binary(x: Tensor, y: Tensor) -> Tensor:
        return function(x, y)

    op(name)(binary)


for _name, _function in {
    "add": torch.add,
    "equal": torch.eq,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "less": torch.lt,
    "less_equal": torch.le,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": torch.mul,
    "not_equal": torch.ne,
    "pow": torch.pow,
    "sub": torch.sub,
}.items():
    _plain(_name, _function)


@op("floor_div")
def floor_div(x: Tensor, y: Tensor) -> Tensor:
    _refuse_zero(x, y)
    return torch.div(x, y, rounding_mode="floor")


@op("mod")
def mod(x: Tensor, y: Tensor) -> Tensor:
    """The remainder of `floor_div`: it has the sign of `y`."""
    _refuse_zero(x, y)
    return torch.remainder(x, y)


@op("real_div")
def real_div(x: Tensor, y: Tensor) -> Tensor:
    """Integers give the quotient towards zero, as the result has their type."""
    if kind_of(x) == "int" and kind_of(y) == "int":
        _refuse_zero(x, y)
        return torch.div(x, y, rounding_mode="trunc")
    return torch.div(x, y)


def _refuse_zero(x: Tensor, y: Tensor) -> None:
    if kind_of(x) == "int" and kind_of(y) == "int" and bool((y == 0).any()):
        raise OpError("an integer is divided by zero")
