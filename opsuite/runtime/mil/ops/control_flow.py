"""Constants, choices, loops and lists."""

from __future__ import annotations

from typing import Any

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.program import ListType, TensorType
from opsuite.runtime.mil.registry import Call, Tensor, Values, op
from opsuite.runtime.mil.state import ListValue

MAX_ITERATIONS = 1 << 20
"""A loop that runs more often is taken for one that never ends."""


@op("const")
def const(val: Any) -> Any:
    return val


@op("select")
def select(cond: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Tensor:
    """Elements of `a` where `cond`, else of `b`; without them, the indices at which `cond` holds."""
    if a is None and b is None:
        return torch.nonzero(cond)
    if a is None or b is None:
        raise OpError("a and b are given together or not at all")
    return torch.where(cond != 0, a, b)


@op("cond")
def cond(call: Call, pred: bool) -> Any:
    blocks = call.operation.blocks
    if len(blocks) != 2:
        raise OpError(f"two blocks are wanted, not {len(blocks)}")
    return call.run(blocks[0] if pred else blocks[1], ())


@op("while_loop")
def while_loop(call: Call, loop_vars: Values) -> Any:
    """Runs its second block on the variables for as long as its first gives true for them."""
    blocks = call.operation.blocks
    if len(blocks) != 2:
        raise OpError(f"two blocks are wanted, not {len(blocks)}")
    condition, body = blocks
    values = tuple(loop_vars)
    for _ in range(MAX_ITERATIONS):
        (goes_on,) = call.run(condition, values)
        if not bool(goes_on):
            return values
        values = call.run(body, values)
    raise OpError(f"has not ended after {MAX_ITERATIONS} iterations")


@op("make_list")
def make_list(
    call: Call, elem_shape: Values, init_length: int = 1, dynamic_length: bool = True, dtype: str = "fp32"
) -> ListValue:
    _check_length(init_length)
    declared = call.operation.outputs[0].type
    blank = None
    if isinstance(declared, ListType) and isinstance(declared.element, TensorType):
        element = declared.element
        if element.shape is not None and element.count is not None:
            blank = torch.zeros([size or 0 for size in element.shape], dtype=element.dtype.carrier)
    return ListValue((blank,) * init_length, dynamic_length, blank)


@op("list_length")
def list_length(ls: Any) -> Tensor:
    return torch.tensor(len(_list(ls).elements), dtype=torch.int32)


@op("list_write")
def list_write(ls: Any, index: int, value: Tensor) -> ListValue:
    return _written(_list(ls), {index: value})


@op("list_read")
def list_read(ls: Any, index: int) -> Tensor:
    return _element(_list(ls), index)


@op("list_gather")
def list_gather(ls: Any, indices: Tensor) -> Tensor:
    return torch.stack([_element(_list(ls), int(index)) for index in indices.tolist()])


@op("list_scatter")
def list_scatter(ls: Any, indices: Tensor, value: Tensor) -> ListValue:
    if len(indices) != len(value):
        raise OpError(f"{len(indices)} indices for {len(value)} values")
    return _written(_list(ls), dict(zip((int(index) for index in indices.tolist()), value, strict=True)))


def _written(ls: ListValue, values: dict[int, Tensor]) -> ListValue:
    elements = list(ls.elements)
    for index, value in values.items():
        if index < 0 or (index >= len(elements) and not ls.dynamic):
            raise OpError(f"index {index} is not in a list of {len(elements)}")
        _check_length(index + 1)
        elements.extend([ls.blank] * (index + 1 - len(elements)))
        elements[index] = value
    return ListValue(tuple(elements), ls.dynamic, ls.blank)


def _element(ls: ListValue, index: int) -> Tensor:
    if not 0 <= index < len(ls.elements):
        raise OpError(f"index {index} is not in a list of {len(ls.elements)}")
    element = ls.elements[index]
    if element is None:
        raise OpError(f"element {index} of the list is read before it is written")
    return element


def _list(value: Any) -> ListValue:
    if not isinstance(value, ListValue):
        raise OpError(f"ls: a list is wanted, not {type(value).__name__}")
    return value


def _check_length(length: int) -> None:
    if not 0 <= length <= MAX_ITERATIONS:
        raise OpError(f"a list of {length} elements")
