"""Operations on each element of one tensor."""

from __future__ import annotations

from collections.abc import Callable

import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.dtypes import DType
from opsuite.runtime.mil.registry import Call, Tensor, op
from opsuite.runtime.mil.rounding import kind_of


def _plain(name: str, function: Callable[[Tensor], Tensor]) -> None:
    def unary(x: Tensor) -> Tensor:
        return function(x)

    op(name)(unary)


for _name, _function in {
    "abs": torch.abs,
    "acos": torch.acos,
    "asin": torch.asin,
    "atan": torch.atan,
    "atanh": torch.atanh,
    "ceil": torch.ceil,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "erf": torch.erf,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "floor": torch.floor,
    "logical_not": torch.logical_not,
    # To even where two integers are equally near.
    "round": torch.round,
    "sign": torch.sign,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tan": torch.tan,
    "tanh": torch.tanh,
}.items():
    _plain(_name, _function)


def epsilon_of(call: Call, given: Tensor | None, default: float) -> float:
    """An epsilon: where none is given the default, rounded to the op's own type, in which it may well be 0."""
    if given is not None:
        return float(given.item())
    if call.half_is_rounded and call.declared().dtype is dtypes.FP16:
        return torch.tensor(default, dtype=torch.float16).item()
    return default


@op("inverse")
def inverse(call: Call, x: Tensor, epsilon: Tensor | None = None) -> Tensor:
    return torch.reciprocal(x + epsilon_of(call, epsilon, 1e-4))


@op("log")
def log(call: Call, x: Tensor, epsilon: Tensor | None = None) -> Tensor:
    return torch.log(x + epsilon_of(call, epsilon, 1e-45))


@op("rsqrt")
def rsqrt(call: Call, x: Tensor, epsilon: Tensor | None = None) -> Tensor:
    return torch.rsqrt(x + epsilon_of(call, epsilon, 1e-12))


@op("clip")
def clip(x: Tensor, alpha: float, beta: float) -> Tensor:
    return torch.clamp(x, alpha, beta).to(x.dtype)


@op("threshold")
def threshold(x: Tensor, alpha: float) -> Tensor:
    return torch.clamp(x, min=alpha).to(x.dtype)


@op("cast")
def cast(x: Tensor, dtype: str) -> Tensor:
    # Older writers say `fp32` as `float32` and so on; both are in files.
    return converted(x, dtypes.by_name(_ALIASES.get(dtype, dtype), "dtype"))


_ALIASES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "double": "fp64"}


def converted(x: Tensor, dtype: DType) -> Tensor:
    """Elements of another type; floats become integers towards zero, the type's limits where they are out of range."""
    if dtype.kind == "int" and kind_of(x) == "float":
        low, high = dtype.limits
        # In double precision, as no float32 is as large as int32's greatest value without being larger.
        return torch.nan_to_num(x.double().trunc(), nan=0.0).clamp(low, high).to(torch.int64)
    if dtype.kind == "int":
        return x.to(torch.int64)
    return x.to(dtype.carrier)
