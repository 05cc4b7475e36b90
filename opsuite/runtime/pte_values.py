"""The values of an executorch program's plan, as Python's and torch's."""

from __future__ import annotations

from typing import Any

import torch

from opsuite.exits import OpsuiteError

_DTYPES = {
    "BYTE": torch.uint8,
    "CHAR": torch.int8,
    "SHORT": torch.int16,
    "INT": torch.int32,
    "LONG": torch.int64,
    "HALF": torch.float16,
    "FLOAT": torch.float32,
    "DOUBLE": torch.float64,
    "COMPLEX64": torch.complex64,
    "COMPLEX128": torch.complex128,
    "BOOL": torch.bool,
    "BFLOAT16": torch.bfloat16,
    "UINT16": torch.uint16,
    "UINT32": torch.uint32,
    "UINT64": torch.uint64,
}


class Values:
    """The values of a plan, by their numbers.

    Args:
        plan: an `ExecutionPlan`.
        constants: the program's constant buffers.
        mutable: the initial contents of mutable buffers.
    """

    def __init__(self, plan: Any, constants: list[Any], mutable: list[Any]) -> None:
        self._evalues = plan.values
        self._constants = constants
        self._mutable = mutable
        self._now: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index not in self._now:
            evalue = self._evalue(index)
            kind = type(evalue).__name__
            # Lists of values change with the values.
            if kind in ("IntList", "TensorList", "OptionalTensorList"):
                return [None if item < 0 else self[item] for item in evalue.items]
            self._now[index] = self._tensor(evalue) if kind == "Tensor" else _plain(evalue)
        return self._now[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._now[index] = value

    def store(self, index: int, value: torch.Tensor) -> None:
        """Stores a tensor in the planned one: in its dtype, and in its shape unless that may vary.

        Raises:
            OpsuiteError: the planned tensor has another number of elements.
        """
        evalue = self._evalue(index)
        if type(evalue).__name__ != "Tensor":
            self._now[index] = value.item()
            return
        value = value.to(dtype_of(evalue))
        if list(value.shape) != list(evalue.sizes) and int(evalue.shape_dynamism) == 0:
            # The delegate gives (1,) where rank 0 is planned.
            if value.numel() != self._empty(evalue).numel():
                raise OpsuiteError(f"value {index}: shape {list(value.shape)}, planned {list(evalue.sizes)}")
            value = value.reshape(evalue.sizes)
        self._now[index] = value

    def fresh(self, index: int) -> torch.Tensor:
        """Memory for a planned output."""
        return self._empty(self._evalue(index))

    def free(self, index: int) -> None:
        self._now.pop(index, None)

    def is_planned_tensor(self, index: int) -> bool:
        return type(self._evalue(index)).__name__ == "Tensor"

    def _evalue(self, index: int) -> Any:
        if not 0 <= index < len(self._evalues):
            raise OpsuiteError(f"the program names value {index}, and has {len(self._evalues)}")
        return self._evalues[index].val

    def _empty(self, tensor: Any) -> torch.Tensor:
        return torch.empty_strided(tensor.sizes, _strides(tensor.sizes, tensor.dim_order), dtype=dtype_of(tensor))

    def _tensor(self, tensor: Any) -> torch.Tensor:
        result = self._empty(tensor)
        if tensor.data_buffer_idx == 0:
            return result.zero_()
        buffers = self._constants if tensor.allocation_info is None else self._mutable
        if tensor.data_buffer_idx >= len(buffers):
            raise OpsuiteError(f"the program names buffer {tensor.data_buffer_idx}, and has {len(buffers)}")
        raw = bytearray(buffers[tensor.data_buffer_idx].storage)
        size = result.numel() * result.element_size()
        if len(raw) < size:
            raise OpsuiteError(f"buffer {tensor.data_buffer_idx} has {len(raw)} bytes for {size}")
        if not size:
            return result
        flat = torch.frombuffer(raw, dtype=result.dtype, count=result.numel())
        return torch.as_strided(flat, result.shape, result.stride()).clone()


def dtype_of(tensor: Any) -> torch.dtype:
    """The torch type of a planned tensor. Raises OpsuiteError for one that is not known."""
    name = tensor.scalar_type.name
    if name not in _DTYPES:
        raise OpsuiteError(f"the program has a tensor of type {name}, which is not known here")
    return _DTYPES[name]


def _strides(sizes: list[int], order: list[int]) -> list[int]:
    """The strides of dense memory in which the dimensions follow each other in that order, outermost first."""
    strides, step = [1] * len(sizes), 1
    for dimension in reversed(order or range(len(sizes))):
        strides[dimension] = step
        step *= max(1, sizes[dimension])
    return strides


def _plain(evalue: Any) -> Any:
    kind = type(evalue).__name__
    if kind == "Null":
        return None
    if kind == "Double":
        return float(evalue.double_val)
    field = {"Int": "int_val", "Bool": "bool_val", "String": "string_val", "DoubleList": "items", "BoolList": "items"}
    if kind not in field:
        raise OpsuiteError(f"the program has a value of kind {kind}, which is not known here")
    return getattr(evalue, field[kind])
