"""Single operations, run here and by coremltools' value inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.interpreter import Interpreter, Report
from opsuite.runtime.mil.program import Binding, Block, Constant, Function, NamedType, Operation, TensorType

_NAMES = {"bool": "bool", "float16": "fp16", "float32": "fp32", "str": "string"}


def constant(value: Any) -> Constant:
    """A numpy array, a number, text or a list of integers as an operand."""
    if isinstance(value, str):
        return Constant(TensorType(dtypes.STRING, ()), lambda: value)
    if not isinstance(value, np.ndarray | np.generic):
        is_int = all(isinstance(each, int | np.integer) for each in np.atleast_1d(value).tolist())
        is_bool = all(isinstance(each, bool) for each in np.atleast_1d(value).tolist())
        value = np.asarray(value, np.bool_ if is_bool else np.int32 if is_int else np.float32)
    array = np.asarray(value)
    dtype = dtypes.by_name(_NAMES.get(array.dtype.name, array.dtype.name), "test")
    return Constant(TensorType(dtype, array.shape), lambda: torch.from_numpy(array.copy()))


def ours(op: str, opset: str, types: list[TensorType], **operands: Any) -> list[np.ndarray]:
    """The outputs of an operation that declares those types."""
    inputs: dict[str, tuple[Binding, ...]] = {
        name: tuple(constant(each) for each in value) if isinstance(value, tuple) else (constant(value),)
        for name, value in operands.items()
    }
    outputs = tuple(NamedType(f"y{place}", type_) for place, type_ in enumerate(types))
    operation = Operation(op, inputs, outputs, {})
    body = Block((), tuple(each.name for each in outputs), (operation,))
    results = Interpreter(Function("main", opset, (), body)).run({}, Report())
    return [result.numpy() for result in results]


def theirs(op: str, opset: str, **operands: Any) -> list[np.ndarray]:
    """What coremltools infers for the same operation."""
    import coremltools as ct
    from coremltools.converters.mil.mil import Builder, Function

    target = getattr(ct.target, {"CoreML5": "iOS15", "CoreML6": "iOS16", "CoreML7": "iOS17", "CoreML8": "iOS18"}[opset])
    with Function({}, opset_version=target):
        found = getattr(Builder, op)(**operands)
    outputs = found if isinstance(found, list | tuple) else [found]
    return [np.asarray(each.val) for each in outputs]


def assert_agree(op: str, opset: str = "CoreML7", rtol: float = 1e-5, **operands: Any) -> None:
    """Both give the same values, shapes included."""
    expected = theirs(op, opset, **operands)
    types = []
    for each in expected:
        name = {"int64": "int32"}.get(each.dtype.name, each.dtype.name)
        types.append(TensorType(dtypes.by_name(_NAMES.get(name, name), op), each.shape))
    actual = ours(op, opset, types, **operands)
    for got, want in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=1e-6)
