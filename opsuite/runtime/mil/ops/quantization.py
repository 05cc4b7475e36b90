"""Quantization of activations."""

from __future__ import annotations

import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, op, since


def along(values: Tensor, x: Tensor, axis: int | None, name: str) -> Tensor:
    """A scalar as it is, or a vector along `axis`, in a shape that broadcasts against `x`."""
    if values.numel() == 1:
        return values.reshape(())
    if axis is None or values.dim() != 1 or not -x.dim() <= axis < x.dim() or len(values) != x.shape[axis]:
        raise OpError(f"{name}: shape {list(values.shape)} does not fit axis {axis} of {list(x.shape)}")
    shape = [1] * x.dim()
    shape[axis] = -1
    return values.reshape(shape)


@op("quantize", opsets=since("CoreML7"))
def quantize(
    input: Tensor, scale: Tensor, output_dtype: str, zero_point: Tensor | None = None, axis: int | None = None
) -> Tensor:
    """`clip(round(input / scale) + zero_point)`; halves go to even."""
    low, high = dtypes.by_name(output_dtype, "output_dtype").limits
    levels = torch.round(input / along(scale, input, axis, "scale"))
    if zero_point is not None:
        levels = levels + along(zero_point, input, axis, "zero_point")
    # NaN has no level: as in a conversion to integers, it is 0.
    return torch.nan_to_num(levels.clamp(low, high), nan=0.0).to(torch.int32)


@op("dequantize", opsets=since("CoreML7"))
def dequantize(input: Tensor, scale: Tensor, zero_point: Tensor | None = None, axis: int | None = None) -> Tensor:
    """`scale * (input - zero_point)`."""
    levels = input.float()
    if zero_point is not None:
        levels = levels - along(zero_point, input, axis, "zero_point")
    return along(scale, input, axis, "scale") * levels
