"""Calls of portable kernels: the operators of an executorch program by their schemas, on torch's own kernels."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from opsuite.exits import OpsuiteError
from opsuite.runtime.pte_values import Values

# Operators of executorch that have no kernel in torch; their last argument is where the result goes.
_PRIMITIVES: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "truediv": operator.truediv,
    "mod": operator.mod,
    "eq": operator.eq,
    "gt": operator.gt,
    "lt": operator.lt,
    "ge": operator.ge,
    "le": operator.le,
    "neg": operator.neg,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "sym_float": float,
    "sym_int": int,
    "sym_max": max,
    "sym_min": min,
    "sym_not": operator.not_,
    "sym_ite": lambda condition, yes, no: yes if condition else no,
}


def call(name: str, overload: str, arguments: list[int], values: Values) -> None:
    """Runs an operator: reads the values of its arguments and stores its results.

    Raises:
        OpsuiteError: there is no such operator here.
    """
    space, _, short = name.partition("::")
    if space == "executorch_prim":
        _primitive(short, overload, arguments, values)
        return
    if (name, overload) == ("aten::sym_size", "int"):
        values[arguments[2]] = values[arguments[0]].shape[values[arguments[1]]]
        return
    if (name, overload) == ("aten::sym_numel", ""):
        values[arguments[1]] = values[arguments[0]].numel()
        return
    found = _operator(space, short, overload)
    schema = found._schema
    positional, named = [], {}
    outputs = []
    for argument, index in zip(schema.arguments, arguments, strict=False):
        if argument.is_out:
            outputs.append(index)
            planned = values.is_planned_tensor(index)
            named[argument.name] = values.fresh(index) if planned else [each.clone() for each in values[index]]
        elif argument.kwarg_only:
            named[argument.name] = values[index]
        else:
            positional.append(values[index])
    results = found(*positional, **named)
    results = results if isinstance(results, tuple | list) else (results,)
    # What follows the arguments is where the results go; for an out variant they are the outs themselves.
    targets = outputs or arguments[len(schema.arguments) :]
    for index, result in zip(targets, results, strict=False):
        _store(index, result, values)


def _store(index: int, result: Any, values: Values) -> None:
    if isinstance(result, torch.Tensor) and values.is_planned_tensor(index):
        values.store(index, result)
    else:
        values[index] = result


def _primitive(name: str, overload: str, arguments: list[int], values: Values) -> None:
    if name == "et_view":
        values.store(arguments[2], values[arguments[0]].reshape(values[arguments[1]]))
    elif name == "et_copy_index":
        whole, part, index = (values[each] for each in arguments[:3])
        whole[index] = part
    elif name in _PRIMITIVES:
        *operands, target = arguments
        values[target] = _PRIMITIVES[name](*(_number(values[each]) for each in operands))
    else:
        raise OpsuiteError(f"no kernel for executorch_prim::{name}.{overload}")


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


@functools.lru_cache(maxsize=1)
def _register() -> None:
    """Registers the operators that executorch adds to torch's. A build without some of them runs the others."""
    for module in (
        "executorch.exir.passes.dim_order_ops_registry",
        "executorch.exir.passes._quant_patterns_and_replacements",
        "torch.ao.quantization.fx._decomposed",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def _operator(space: str, name: str, overload: str) -> Any:
    _register()
    try:
        return getattr(getattr(getattr(torch.ops, space), name), overload or "default")
    except AttributeError as error:
        raise OpsuiteError(f"no kernel for {space}::{name}.{overload}") from error
