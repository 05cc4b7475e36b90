"""Operations on whole tensors."""

from __future__ import annotations

import math
from typing import Any

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Call, Ints, Tensor, Tensors, op, since, until

MAX_ELEMENTS = 1 << 31
"""A tensor whose size comes from values, not from declared types, has no more elements than this."""


def bounded(shape: Ints) -> Ints:
    """A shape that comes from values. Raises OpError for negative sizes and for too many elements."""
    if any(size < 0 for size in shape) or math.prod(shape) > MAX_ELEMENTS:
        raise OpError(f"a tensor of shape {shape}")
    return shape


@op("identity")
def identity(x: Any) -> Any:
    return x


@op("shape")
def shape(x: Tensor) -> Tensor:
    return torch.tensor(list(x.shape), dtype=torch.int32)


@op("concat")
def concat(values: Tensors, axis: int, interleave: bool = False) -> Tensor:
    """Interleaved, the first slices of all come first, then the second ones."""
    if not interleave:
        return torch.cat(values, axis)
    axis %= values[0].dim()
    return torch.stack(values, axis + 1).flatten(axis, axis + 1)


@op("stack")
def stack(values: Tensors, axis: int) -> Tensor:
    return torch.stack(values, axis)


@op("split")
def split(x: Tensor, axis: int, num_splits: int | None = None, split_sizes: Ints | None = None) -> tuple[Tensor, ...]:
    size = x.shape[axis]
    if split_sizes is None:
        if not num_splits or num_splits < 0 or size % num_splits:
            raise OpError(f"a dimension of {size} split into {num_splits}")
        split_sizes = [size // num_splits] * num_splits
    elif num_splits is not None and num_splits != len(split_sizes):
        raise OpError(f"num_splits is {num_splits}, and {len(split_sizes)} split_sizes are given")
    return tuple(torch.split(x, split_sizes, axis))


@op("tile")
def tile(x: Tensor, reps: Ints) -> Tensor:
    if len(reps) != x.dim():
        raise OpError(f"reps: {len(reps)} numbers for {x.dim()} dimensions")
    bounded([size * times for size, times in zip(x.shape, reps, strict=True)])
    return x.repeat(reps)


@op("fill")
def fill(call: Call, shape: Ints, value: Tensor | None = None) -> Tensor:
    return torch.full(bounded(shape), 0 if value is None else value.item(), dtype=call.declared().dtype.carrier)


@op("fill_like", opsets=since("CoreML6"))
def fill_like(call: Call, ref_tensor: Tensor, value: Tensor | None = None) -> Tensor:
    return fill(call, list(ref_tensor.shape), value)


@op("flatten2d")
def flatten2d(x: Tensor, axis: int = 1) -> Tensor:
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@op("band_part")
def band_part(x: Tensor, lower: int = -1, upper: int = -1) -> Tensor:
    """The innermost matrices with zeros outside the band; a negative bound keeps all on its side."""
    rows = torch.arange(x.shape[-2]).unsqueeze(1)
    columns = torch.arange(x.shape[-1])
    inside = torch.ones(x.shape[-2:], dtype=torch.bool)
    if lower >= 0:
        inside &= rows - columns <= lower
    if upper >= 0:
        inside &= columns - rows <= upper
    return torch.where(inside, x, torch.zeros_like(x))


@op("cumsum")
def cumsum(x: Tensor, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    y = x.flip(axis) if reverse else x
    total = torch.cumsum(y, axis)
    if exclusive:
        total = total.roll(1, axis)
        total.select(axis, 0).zero_()
    return total.flip(axis) if reverse else total


@op("non_zero")
def non_zero(x: Tensor) -> Tensor:
    return torch.nonzero(x)


@op("range_1d")
def range_1d(end: Tensor, start: Tensor, step: Tensor) -> Tensor:
    """As `arange` of numpy: without `end`."""
    first, last, by = start.item(), end.item(), step.item()
    if by == 0:
        raise OpError("a step of 0")
    count = max(0, math.ceil((last - first) / by))
    bounded([count])
    return start.reshape(()) + step.reshape(()) * torch.arange(count, dtype=start.dtype)


@op("one_hot")
def one_hot(
    call: Call,
    indices: Tensor,
    one_hot_vector_size: int,
    axis: int = -1,
    on_value: Tensor | None = None,
    off_value: Tensor | None = None,
) -> Tensor:
    dtype = call.declared().dtype.carrier
    bounded([indices.numel(), one_hot_vector_size])
    axis = axis % (indices.dim() + 1)
    places = torch.arange(one_hot_vector_size).reshape(-1, *[1] * (indices.dim() - axis))
    hot = indices.unsqueeze(axis) == places
    on = torch.tensor(1 if on_value is None else on_value.item(), dtype=dtype)
    off = torch.tensor(0 if off_value is None else off_value.item(), dtype=dtype)
    return torch.where(hot, on, off)


@op("pad")
def pad(x: Tensor, pad: Ints, mode: str = "constant", constant_val: float = 0.0) -> Tensor:
    """The last dimensions, before and after each in turn."""
    if len(pad) % 2 or len(pad) > 2 * x.dim():
        raise OpError(f"pad: {len(pad)} numbers for {x.dim()} dimensions")
    first = x.dim() - len(pad) // 2
    for axis, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), first):
        size = x.shape[axis]
        bounded([*x.shape[:axis], size + before + after, *x.shape[axis + 1 :]])
        if not before and not after:
            continue
        if mode == "constant":
            parts = [_filled(x, axis, before, constant_val), x, _filled(x, axis, after, constant_val)]
            x = torch.cat(parts, axis)
            continue
        places = torch.arange(-before, size + after)
        if mode == "reflect":
            if max(before, after) > size - 1:
                raise OpError(f"pad: {before} and {after} reflect a dimension of {size}")
            places = places.abs()
            places = torch.where(places > size - 1, 2 * (size - 1) - places, places)
        elif mode == "replicate":
            places = places.clamp(0, size - 1)
        else:
            raise OpError(f"mode: unknown {mode!r}")
        x = x.index_select(axis, places)
    return x


def _filled(x: Tensor, axis: int, count: int, value: float) -> Tensor:
    return torch.full([*x.shape[:axis], count, *x.shape[axis + 1 :]], value).to(x.dtype)


@op("argsort")
def argsort(x: Tensor, axis: int = -1, ascending: bool = False) -> Tensor:
    return torch.sort(x, dim=axis, descending=not ascending, stable=True).indices


def _topk(x: Tensor, k: int, axis: int, ascending: bool) -> tuple[Tensor, Tensor]:
    """In order; of equal elements the first one comes first."""
    size = x.shape[axis]
    if k == -1:
        k = size
    if not 0 <= k <= size:
        raise OpError(f"k: {k} of {size} elements")
    found = torch.sort(x, dim=axis, descending=not ascending, stable=True)
    return found.values.narrow(axis, 0, k), found.indices.narrow(axis, 0, k)


@op("topk", opsets=until("CoreML5"))
def topk_15(x: Tensor, k: int = 1, axis: int = -1, ascending: bool = False) -> tuple[Tensor, Tensor]:
    return _topk(x, k, axis, ascending)


@op("topk", opsets=since("CoreML6"))
def topk(
    x: Tensor,
    k: int = 1,
    axis: int = -1,
    ascending: bool = False,
    sort: bool = True,
    return_indices: bool = True,
    output_indices_dtype: str = "int32",
) -> Any:
    values, indices = _topk(x, k, axis, ascending)
    return (values, indices) if return_indices else values
