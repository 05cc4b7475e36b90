"""Pooling."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from opsuite.runtime.mil.ops.conv import padded, paddings, sized, spatial_rank
from opsuite.runtime.mil.registry import Ints, Tensor, op

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _windows(
    x: Tensor, kernel_sizes: Ints, strides: Ints | None, pad_type: str, pad: Ints | None, ceil_mode: bool
) -> tuple[Ints, Ints, list[tuple[int, int]]]:
    """Kernel, strides and padding of each spatial dimension.

    The padding after a dimension is enlarged by what `ceil_mode` lets the last window reach beyond.
    """
    rank = spatial_rank(x)
    kernel, steps = sized(kernel_sizes, rank, "kernel_sizes", 1), sized(strides, rank, "strides", 1)
    amounts = paddings(pad_type, pad, list(x.shape[2:]), kernel, steps)
    if not ceil_mode:
        return kernel, steps, amounts
    enlarged = []
    for size, (before, after), extent, stride in zip(x.shape[2:], amounts, kernel, steps, strict=True):
        count = math.ceil((size + before + after - extent) / stride) + 1
        # A window has to begin inside the input or the padding before it.
        if (count - 1) * stride >= size + before and before + after > 0:
            count -= 1
        enlarged.append((before, max(after, (count - 1) * stride + extent - size - before)))
    return kernel, steps, enlarged


@op("max_pool")
def max_pool(
    x: Tensor,
    kernel_sizes: Ints,
    pad_type: str,
    strides: Ints | None = None,
    pad: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`x` (n, C, *d); padding is never the greatest."""
    kernel, steps, amounts = _windows(x, kernel_sizes, strides, pad_type, pad, ceil_mode)
    return _MAX[len(kernel)](padded(x, amounts, -math.inf), kernel, steps)


@op("avg_pool")
def avg_pool(
    x: Tensor,
    kernel_sizes: Ints,
    pad_type: str,
    strides: Ints | None = None,
    pad: Ints | None = None,
    exclude_padding_from_average: bool = False,
    ceil_mode: bool = False,
) -> Tensor:
    """`x` (n, C, *d). Unless padding is excluded, each window is divided by the full kernel.

    That holds for windows that `ceil_mode` lets reach beyond the padding too: torch divides those by what lies inside.
    """
    kernel, steps, amounts = _windows(x, kernel_sizes, strides, pad_type, pad, ceil_mode)
    average = _AVERAGE[len(kernel)]
    mean = average(padded(x, amounts), kernel, steps)
    if exclude_padding_from_average and any(sum(pair) for pair in amounts):
        inside = padded(torch.ones((1, 1, *x.shape[2:]), dtype=x.dtype), amounts)
        return mean / average(inside, kernel, steps)
    return mean


@op("l2_pool")
def l2_pool(
    x: Tensor,
    kernel_sizes: Ints,
    pad_type: str,
    strides: Ints | None = None,
    pad: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`x` (n, C, *d): the root of the sum of squares of each window."""
    mean = avg_pool(x * x, kernel_sizes, pad_type, strides, pad, ceil_mode=ceil_mode)
    return torch.sqrt(mean * math.prod(kernel_sizes))
