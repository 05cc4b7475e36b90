"""Reading and writing at indices.

Up to iOS16 negative indices count from the end; from iOS17 on they are out of range. What an index out of range reads
is undefined unless `validate_indices` is set: here it is an error in both cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, op, since, until

_OLD, _NEW = until("CoreML6"), since("CoreML7")


def _wrapped(indices: Tensor, size: int) -> Tensor:
    indices = indices.long()
    return torch.where(indices < 0, indices + size, indices)


def _checked(indices: Tensor, size: int) -> Tensor:
    indices = indices.long()
    if indices.numel():
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= size:
            raise OpError(f"indices from {low} to {high} into {size} elements")
    return indices


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise OpError(f"axis {axis} of {rank} dimensions")
    return axis % rank


def _per_batch(x: Tensor, indices: Tensor, batch_dims: int, gather_one: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """What `gather_one` gives for each element of the leading `batch_dims` dimensions, in those dimensions."""
    rows = x.reshape(-1, *x.shape[batch_dims:])
    picks = indices.reshape(len(rows), *indices.shape[batch_dims:])
    parts = [gather_one(row, pick) for row, pick in zip(rows, picks, strict=True)]
    return torch.stack(parts).reshape(*x.shape[:batch_dims], *parts[0].shape)


def _gather(x: Tensor, indices: Tensor, axis: int, batch_dims: int) -> Tensor:
    """`x` (*batch, *before, n, *after), `indices` (*batch, *k), the result (*batch, *before, *k, *after)."""
    axis = _axis(axis, x.dim())
    if not 0 <= batch_dims <= min(axis, indices.dim()):
        raise OpError(f"batch_dims {batch_dims} with axis {axis} and indices of shape {list(indices.shape)}")
    indices = _checked(indices, x.shape[axis])
    if batch_dims == 0:
        flat = torch.index_select(x, axis, indices.reshape(-1))
        return flat.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return _per_batch(x, indices, batch_dims, lambda row, pick: _gather(row, pick, axis - batch_dims, 0))


@op("gather", opsets=until("CoreML5"))
def gather_15(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    return _gather(x, _wrapped(indices, x.shape[axis]), axis, 0)


@op("gather", opsets=("CoreML6",))
def gather_16(x: Tensor, indices: Tensor, axis: int = 0, batch_dims: int = 0) -> Tensor:
    return _gather(x, _wrapped(indices, x.shape[axis]), axis, batch_dims)


@op("gather", opsets=_NEW)
def gather(x: Tensor, indices: Tensor, axis: int = 0, batch_dims: int = 0, validate_indices: bool = False) -> Tensor:
    return _gather(x, indices, axis, batch_dims)


@op("gather_along_axis", opsets=_OLD)
def gather_along_axis_15(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    return gather_along_axis(x, _wrapped(indices, x.shape[axis]), axis)


@op("gather_along_axis", opsets=_NEW)
def gather_along_axis(x: Tensor, indices: Tensor, axis: int = 0, validate_indices: bool = False) -> Tensor:
    axis = _axis(axis, x.dim())
    return torch.gather(x, axis, _checked(indices, x.shape[axis]))


def _linear(indices: Tensor, shape: torch.Size | list[int], wraps: bool) -> Tensor:
    """Tuples of indices (*k, d) into dimensions of those sizes, as flat indices (product of k)."""
    columns = []
    for size, column in zip(shape, indices.reshape(-1, len(shape)).unbind(1), strict=True):
        columns.append(_checked(_wrapped(column, size) if wraps else column, size))
    flat = torch.zeros(math.prod(indices.shape[:-1]), dtype=torch.int64)
    for size, column in zip(shape, columns, strict=True):
        flat = flat * size + column
    return flat


def _gather_nd(x: Tensor, indices: Tensor, batch_dims: int, wraps: bool) -> Tensor:
    depth = indices.shape[-1]
    if batch_dims + depth > x.dim():
        raise OpError(f"indices of {depth} dimensions into shape {list(x.shape)} with {batch_dims} batch dimensions")
    if batch_dims == 0:
        rows = x.reshape(math.prod(x.shape[:depth]), *x.shape[depth:])
        picked = rows[_linear(indices, x.shape[:depth], wraps)]
        return picked.reshape(*indices.shape[:-1], *x.shape[depth:])
    return _per_batch(x, indices, batch_dims, lambda row, pick: _gather_nd(row, pick, 0, wraps))


@op("gather_nd", opsets=until("CoreML5"))
def gather_nd_15(x: Tensor, indices: Tensor) -> Tensor:
    return _gather_nd(x, indices, 0, wraps=True)


@op("gather_nd", opsets=("CoreML6",))
def gather_nd_16(x: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    return _gather_nd(x, indices, batch_dims, wraps=True)


@op("gather_nd", opsets=_NEW)
def gather_nd(x: Tensor, indices: Tensor, batch_dims: int = 0, validate_indices: bool = False) -> Tensor:
    return _gather_nd(x, indices, batch_dims, wraps=False)


_REDUCE = {"mul": "prod", "max": "amax", "min": "amin"}


def _combined(data: Tensor, index: Tensor, updates: Tensor, mode: str) -> Tensor:
    """`updates` put into (a copy of) `data` along dimension 0, at the `index` of the same shape as `updates`."""
    if index.shape != updates.shape:
        raise OpError(f"updates of shape {list(updates.shape)} for indices of shape {list(index.shape)}")
    updates = updates.to(data.dtype)
    if mode == "update":
        return data.scatter(0, index, updates)
    if mode in ("add", "sub"):
        return data.scatter_add(0, index, updates if mode == "add" else -updates)
    if mode in _REDUCE:
        return data.scatter_reduce(0, index, updates, _REDUCE[mode])
    if mode == "div":
        divisor = torch.ones_like(data).scatter_reduce(0, index, updates, "prod")
        return torch.div(data, divisor, rounding_mode=None if data.is_floating_point() else "trunc")
    raise OpError(f"mode: unknown {mode!r}")


def _put(data: Tensor, rows: Tensor, updates: Tensor, mode: str) -> Tensor:
    """Whole rows put into dimension 0 of `data` at `rows` (n)."""
    if updates.shape[1:] != data.shape[1:] or len(rows) != len(updates):
        raise OpError(f"updates of shape {list(updates.shape)} do not fit {list(data.shape)}")
    index = rows.reshape(-1, *[1] * (data.dim() - 1)).expand(updates.shape)
    return _combined(data, index, updates, mode)


def _scatter(data: Tensor, indices: Tensor, updates: Tensor, axis: int, mode: str) -> Tensor:
    axis = _axis(axis, data.dim())
    rows = _checked(indices.reshape(-1), data.shape[axis])
    shape = [*data.shape[:axis], len(rows), *data.shape[axis + 1 :]]
    return _put(data.movedim(axis, 0), rows, updates.reshape(shape).movedim(axis, 0), mode).movedim(0, axis)


@op("scatter", opsets=_OLD)
def scatter_15(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, mode: str = "update") -> Tensor:
    return _scatter(data, _wrapped(indices, data.shape[axis]), updates, axis, mode)


@op("scatter", opsets=_NEW)
def scatter(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int = 0,
    mode: str = "update",
    validate_indices: bool = False,
) -> Tensor:
    return _scatter(data, indices, updates, axis, mode)


@op("scatter_along_axis", opsets=_OLD)
def scatter_along_axis_15(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, mode: str = "update"
) -> Tensor:
    return scatter_along_axis(data, _wrapped(indices, data.shape[axis]), updates, axis, mode)


@op("scatter_along_axis", opsets=_NEW)
def scatter_along_axis(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int = 0,
    mode: str = "update",
    validate_indices: bool = False,
) -> Tensor:
    axis = _axis(axis, data.dim())
    index = _checked(indices, data.shape[axis]).movedim(axis, 0)
    return _combined(data.movedim(axis, 0), index, updates.movedim(axis, 0), mode).movedim(0, axis)


def _scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str, wraps: bool) -> Tensor:
    depth = indices.shape[-1]
    if depth > data.dim():
        raise OpError(f"indices of {depth} dimensions into shape {list(data.shape)}")
    rest = data.shape[depth:]
    flat = _linear(indices, data.shape[:depth], wraps)
    rows = data.reshape(math.prod(data.shape[:depth]), *rest)
    return _put(rows, flat, updates.reshape(len(flat), *rest), mode).reshape(data.shape)


@op("scatter_nd", opsets=_OLD)
def scatter_nd_15(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "add") -> Tensor:
    return _scatter_nd(data, indices, updates, mode, wraps=True)


@op("scatter_nd", opsets=_NEW)
def scatter_nd(
    data: Tensor, indices: Tensor, updates: Tensor, mode: str = "add", validate_indices: bool = False
) -> Tensor:
    return _scatter_nd(data, indices, updates, mode, wraps=False)
