"""From what an operation computed to a value of its declared type."""

from __future__ import annotations

from typing import Any, Literal

import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.dtypes import DType
from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.program import Constant, DictType, ListType, StateType, TensorType, TupleType, Type
from opsuite.runtime.mil.state import ListValue, State

Precision = Literal["storage", "fp32"]

FP16_LIMIT = 65520.0
"""The least magnitude that rounds to infinity in fp16."""


def carried(stored: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Stored elements in the type in which values are carried."""
    return stored.to(dtype.carrier)


def constant(value: Constant) -> Any:
    """A constant's value, as operations take it."""
    return _carried_plain(value.read(), value.type)


def _carried_plain(value: Any, type_: Type) -> Any:
    if isinstance(value, torch.Tensor) and isinstance(type_, TensorType):
        return carried(value, type_.dtype)
    if isinstance(value, list) and isinstance(type_, ListType):
        return [_carried_plain(each, type_.element) for each in value]
    if isinstance(value, tuple) and isinstance(type_, TupleType):
        return tuple(_carried_plain(each, element) for each, element in zip(value, type_.elements, strict=True))
    return value


def settle(value: Any, type_: Type, precision: Precision) -> tuple[Any, int]:
    """A computed value as one of the declared type.

    Args:
        value: what an operation gave: floats unrounded, integers possibly wider than declared.
        type_: the declared type.
        precision: "storage" rounds floats to their type, "fp32" leaves fp16 and bf16 alone.

    Returns:
        The value, and how many of its finite elements became infinite in fp16.

    Raises:
        OpError: it is of another kind, shape or element kind than declared.
    """
    if isinstance(type_, TensorType):
        if type_.is_text:
            if not isinstance(value, str | list):
                raise OpError(f"declared {type_}, computed {describe(value)}")
            return value, 0
        if not isinstance(value, torch.Tensor):
            raise OpError(f"declared {type_}, computed {describe(value)}")
        if not type_.admits(tuple(value.shape)):
            raise OpError(f"declared {type_}, computed shape {list(value.shape)}")
        return settle_elements(value, type_.dtype, precision)
    wanted = {ListType: (list, ListValue), TupleType: tuple, DictType: dict, StateType: State}[type(type_)]
    if not isinstance(value, wanted):  # type: ignore[arg-type]
        raise OpError(f"declared {type_}, computed {describe(value)}")
    return value, 0


def settle_elements(value: torch.Tensor, dtype: DType, precision: Precision) -> tuple[torch.Tensor, int]:
    """The elements rounded (floats) or wrapped (integers) to the type, as `settle` says."""
    kind = kind_of(value)
    if kind != dtype.kind:
        raise OpError(f"declared {dtype}, computed {value.dtype}")
    if kind == "bool":
        return value, 0
    if kind == "int":
        return wrapped(value, dtype), 0
    value = value.to(dtype.carrier)
    if dtype.bits >= 32 or precision == "fp32":
        return value, 0
    rounded = value.to(dtype.storage).to(dtype.carrier)
    return rounded, _overflows(value, rounded) if dtype is dtypes.FP16 else 0


def wrapped(value: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Integers modulo the type's range, in its carrier."""
    carrier_bits = torch.iinfo(dtype.carrier).bits
    if (dtype.bits < carrier_bits and value.dtype is not dtype.storage) or dtype.bits < 8:
        mask = (1 << dtype.bits) - 1
        value = value.to(torch.int64) & mask
        if dtype.signed:
            half = 1 << (dtype.bits - 1)
            value = (value ^ half) - half
    return value.to(dtype.carrier)


def _overflows(value: torch.Tensor, rounded: torch.Tensor) -> int:
    if not value.numel():
        return 0
    low, high = torch.aminmax(value)
    # With a NaN among the elements both are NaN, so that neither comparison holds.
    if bool(high < FP16_LIMIT) and bool(low > -FP16_LIMIT):
        return 0
    return int((torch.isinf(rounded) & ~torch.isinf(value)).sum())


def kind_of(value: torch.Tensor) -> str:
    """bool, int or float."""
    if value.dtype is torch.bool:
        return "bool"
    return "float" if value.dtype.is_floating_point else "int"


def describe(value: Any) -> str:
    """A value in an error message."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
