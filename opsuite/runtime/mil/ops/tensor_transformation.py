"""Operations that move elements."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.conv import padded
from opsuite.runtime.mil.registry import Bools, Ints, Tensor, Tensors, op, since, until


@op("expand_dims")
def expand_dims(x: Tensor, axes: Ints) -> Tensor:
    """The axes are those of the result."""
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@op("squeeze")
def squeeze(x: Tensor, axes: Ints | None = None) -> Tensor:
    """Axes that are longer than 1 stay."""
    return x.squeeze() if axes is None else x.squeeze(tuple({axis % max(1, x.dim()) for axis in axes}))


@op("transpose")
def transpose(x: Tensor, perm: Ints) -> Tensor:
    return x.permute(perm)


@op("reshape", opsets=until("CoreML6"))
def reshape_15(x: Tensor, shape: Ints) -> Tensor:
    """A 0 takes over the size at its place."""
    if 0 in shape and len(shape) != x.dim() and x.numel():
        raise OpError(f"shape: {shape} has a 0, and not as many dimensions as {list(x.shape)}")
    if 0 in shape and len(shape) == x.dim():
        shape = [had if size == 0 else size for had, size in zip(x.shape, shape, strict=True)]
    return _reshaped(x, shape)


@op("reshape", opsets=since("CoreML7"))
def reshape(x: Tensor, shape: Ints) -> Tensor:
    """A 0 takes over the size at its place counted from the last, or 1 where there is none."""
    shift = x.dim() - len(shape)
    sizes = [
        (x.shape[shift + place] if shift + place >= 0 else 1) if size == 0 else size for place, size in enumerate(shape)
    ]
    return _reshaped(x, sizes)


def _reshaped(x: Tensor, shape: Ints) -> Tensor:
    known = math.prod(size for size in shape if size != -1)
    # torch does not infer a size where the others have no elements.
    if -1 in shape and known == 0:
        shape = [0 if size == -1 else size for size in shape]
    return x.reshape(shape)


@op("reshape_like", opsets=since("CoreML6"))
def reshape_like(x: Tensor, ref_tensors: Tensors, begins: Tensors, ends: Tensors, end_masks: Tensors) -> Tensor:
    shape: list[int] = []
    for ref, begin, end, to_end in zip(ref_tensors, begins, ends, end_masks, strict=True):
        shape += ref.shape[int(begin) : None if bool(to_end) else int(end)]
    return x.reshape(shape)


@op("reverse")
def reverse(x: Tensor, axes: Ints | None = None) -> Tensor:
    return x.flip(list(range(x.dim())) if axes is None else axes)


@op("reverse_sequence")
def reverse_sequence(x: Tensor, lengths: Tensor, seq_axis: int = 0, batch_axis: int = 0) -> Tensor:
    """The first `lengths[i]` elements along `seq_axis`, reversed, for each place `i` of `batch_axis`."""
    rows = x.movedim((batch_axis, seq_axis), (0, 1))
    if lengths.shape != rows.shape[:1]:
        raise OpError(f"lengths: shape {list(lengths.shape)} for {rows.shape[0]} sequences")
    result = rows.clone()
    for row, source, length in zip(result, rows, lengths.tolist(), strict=True):
        row[:length] = source[:length].flip(0)
    return result.movedim((0, 1), (batch_axis, seq_axis))


def _indices(
    x: Tensor,
    begin: Ints,
    end: Ints,
    stride: Ints | None,
    begin_mask: Bools | None,
    end_mask: Bools | None,
    squeeze_mask: Bools | None,
) -> list[int | range]:
    """For each dimension one index, where it is squeezed, or a range of them."""
    rank = x.dim()
    steps = [1] * rank if stride is None else stride
    from_start = [False] * rank if begin_mask is None else begin_mask
    to_end = [False] * rank if end_mask is None else end_mask
    squeezed = [False] * rank if squeeze_mask is None else squeeze_mask
    if any(len(each) != rank for each in (begin, end, steps, from_start, to_end, squeezed)):
        raise OpError(f"begin, end, stride and masks are not of {rank} elements each")
    result: list[int | range] = []
    for axis, size in enumerate(x.shape):
        if squeezed[axis]:
            start = 0 if from_start[axis] else begin[axis]
            if not -size <= start < size:
                raise OpError(f"index {start} of a dimension of {size}")
            result.append(start % size)
        elif steps[axis] == 0:
            raise OpError("a stride of 0")
        else:
            start_at = None if from_start[axis] else begin[axis]
            end_at = None if to_end[axis] else end[axis]
            result.append(range(size)[slice(start_at, end_at, steps[axis])])
    return result


@op("slice_by_index")
def slice_by_index(
    x: Tensor,
    begin: Ints,
    end: Ints,
    stride: Ints | None = None,
    begin_mask: Bools | None = None,
    end_mask: Bools | None = None,
    squeeze_mask: Bools | None = None,
) -> Tensor:
    places = _indices(x, begin, end, stride, begin_mask, end_mask, squeeze_mask)
    for axis, place in reversed(list(enumerate(places))):
        if isinstance(place, int):
            x = x.select(axis, place)
        elif place.step > 0:
            x = x[(slice(None),) * axis + (slice(place.start, place.stop, place.step),)]
        else:
            x = x.index_select(axis, torch.tensor(list(place), dtype=torch.int64))
    return x


@op("slice_by_size")
def slice_by_size(x: Tensor, begin: Ints, size: Ints) -> Tensor:
    """A size of -1 is all that is left."""
    if len(begin) != x.dim() or len(size) != x.dim():
        raise OpError(f"begin and size are not of {x.dim()} elements each")
    for axis, (start, count) in enumerate(zip(begin, size, strict=True)):
        at = start % x.shape[axis] if start < 0 else start
        x = x.narrow(axis, at, x.shape[axis] - at if count == -1 else count)
    return x


@op("slice_update", opsets=since("CoreML8"))
def slice_update(
    x: Tensor,
    update: Tensor,
    begin: Ints,
    end: Ints,
    stride: Ints | None = None,
    begin_mask: Bools | None = None,
    end_mask: Bools | None = None,
    squeeze_mask: Bools | None = None,
) -> Tensor:
    """`x` with the slice that `slice_by_index` would give replaced by `update`."""
    places = _indices(x, begin, end, stride, begin_mask, end_mask, squeeze_mask)
    shape = [len(place) for place in places if isinstance(place, range)]
    if list(update.shape) != shape:
        raise OpError(f"update: shape {list(update.shape)} for a slice of shape {shape}")
    index: list[Any] = []
    for axis, place in enumerate(places):
        numbers = torch.tensor([place] if isinstance(place, int) else list(place), dtype=torch.int64)
        index.append(numbers.reshape([-1 if axis == each else 1 for each in range(x.dim())]))
    sizes = [1 if isinstance(place, int) else len(place) for place in places]
    result = x.clone(memory_format=torch.contiguous_format)
    result[tuple(index)] = update.reshape(sizes).to(x.dtype)
    return result


@op("depth_to_space")
def depth_to_space(x: Tensor, block_size: int) -> Tensor:
    """(n, b * b * C, H, W) to (n, C, H * b, W * b): the place in the block is the slower part of the channel."""
    n, depth, height, width = x.shape
    blocks = x.reshape(n, block_size, block_size, depth // block_size**2, height, width)
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape(n, -1, height * block_size, width * block_size)


@op("space_to_depth")
def space_to_depth(x: Tensor, block_size: int) -> Tensor:
    """The inverse of `depth_to_space`."""
    n, depth, height, width = x.shape
    blocks = x.reshape(n, depth, height // block_size, block_size, width // block_size, block_size)
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape(n, depth * block_size**2, height // block_size, width // block_size)


@op("pixel_shuffle")
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    return F.pixel_shuffle(x, upscale_factor)


@op("pixel_unshuffle", opsets=since("CoreML6"))
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    return F.pixel_unshuffle(x, downscale_factor)


@op("space_to_batch")
def space_to_batch(x: Tensor, block_shape: Ints, paddings: Tensor) -> Tensor:
    """(n, C, H, W), padded, to (b0 * b1 * n, C, H / b0, W / b1)."""
    (b0, b1), amounts = block_shape, [(int(before), int(after)) for before, after in paddings.tolist()]
    y = padded(x, amounts)
    n, channels, height, width = y.shape
    blocks = y.reshape(n, channels, height // b0, b0, width // b1, b1)
    return blocks.permute(3, 5, 0, 1, 2, 4).reshape(n * b0 * b1, channels, height // b0, width // b1)


@op("batch_to_space")
def batch_to_space(x: Tensor, block_shape: Ints, crops: Tensor) -> Tensor:
    """The inverse of `space_to_batch`."""
    b0, b1 = block_shape
    n, channels, height, width = x.shape
    blocks = x.reshape(b0, b1, n // (b0 * b1), channels, height, width)
    y = blocks.permute(2, 3, 4, 0, 5, 1).reshape(n // (b0 * b1), channels, height * b0, width * b1)
    return padded(y, [(-int(before), -int(after)) for before, after in crops.tolist()])


@op("sliding_windows")
def sliding_windows(x: Tensor, axis: int, size: int, stride: int = 1) -> Tensor:
    """(*, d, *) to (*, number of windows, size, *)."""
    axis %= x.dim()
    return x.unfold(axis, size, stride).movedim(-1, axis + 1)
