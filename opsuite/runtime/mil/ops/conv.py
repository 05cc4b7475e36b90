"""Convolutions."""

from __future__ import annotations

from torch.nn import functional as F

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.activation import per_channel
from opsuite.runtime.mil.registry import Ints, Tensor, op

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def spatial_rank(x: Tensor) -> int:
    """The number of spatial dimensions of `(n, C, *spatial)`. Raises OpError unless it is 1, 2 or 3."""
    if x.dim() not in (3, 4, 5):
        raise OpError(f"x: rank 3, 4 or 5 is wanted, not {x.dim()}")
    return x.dim() - 2


def sized(values: Ints | None, rank: int, name: str, default: int) -> Ints:
    """One number per spatial dimension. Raises OpError for another count."""
    if values is None:
        return [default] * rank
    if len(values) != rank:
        raise OpError(f"{name}: {len(values)} numbers for {rank} spatial dimensions")
    return values


def paddings(
    pad_type: str, pad: Ints | None, sizes: list[int], kernel: list[int], strides: list[int]
) -> list[tuple[int, int]]:
    """How much each spatial dimension is padded before and after.

    Args:
        pad_type: `valid`, `custom`, `same` (the odd one goes after) or `same_lower` (before).
        pad: for `custom`, before and after for each dimension in turn.
        sizes: of the input.
        kernel: its extent, dilation included.
        strides: of the windows.
    """
    if pad_type == "valid":
        return [(0, 0)] * len(sizes)
    if pad_type == "custom":
        flat = [0] * (2 * len(sizes)) if pad is None else pad
        if len(flat) != 2 * len(sizes):
            raise OpError(f"pad: {len(flat)} numbers for {len(sizes)} spatial dimensions")
        return [(flat[2 * i], flat[2 * i + 1]) for i in range(len(sizes))]
    if pad_type not in ("same", "same_lower"):
        raise OpError(f"pad_type: unknown {pad_type!r}")
    result = []
    for size, extent, stride in zip(sizes, kernel, strides, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + extent - size)
        less, more = total // 2, total - total // 2
        result.append((less, more) if pad_type == "same" else (more, less))
    return result


def padded(x: Tensor, amounts: list[tuple[int, int]], value: float = 0.0) -> Tensor:
    """The trailing dimensions padded (negative amounts crop)."""
    flat = [amount for pair in reversed(amounts) for amount in pair]
    return F.pad(x, flat, value=value) if any(flat) else x


@op("conv")
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    strides: Ints | None = None,
    pad_type: str = "valid",
    pad: Ints | None = None,
    dilations: Ints | None = None,
    groups: int = 1,
) -> Tensor:
    """`x` (n, C_in, *d), `weight` (C_out, C_in / groups, *k), `bias` (C_out)."""
    rank = spatial_rank(x)
    steps = sized(strides, rank, "strides", 1)
    spread = sized(dilations, rank, "dilations", 1)
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(weight.shape[2:], spread, strict=True)]
    amounts = paddings(pad_type, pad, list(x.shape[2:]), extents, steps)
    if all(before == after for before, after in amounts):
        return _CONV[rank](x, weight, bias, steps, [before for before, _ in amounts], spread, groups)
    return _CONV[rank](padded(x, amounts), weight, bias, steps, 0, spread, groups)


@op("conv_quantized")
def conv_quantized(
    x: Tensor,
    weight: Tensor,
    quantization_type: str,
    quant_scale: Tensor,
    quant_bias: Tensor,
    bias: Tensor | None = None,
    nbits: int = 8,
    strides: Ints | None = None,
    pad_type: str = "valid",
    pad: Ints | None = None,
    dilations: Ints | None = None,
    groups: int = 1,
) -> Tensor:
    """A convolution whose weight is `weight * quant_scale + quant_bias`."""
    if quantization_type != "linear":
        raise OpError(f"quantization_type: {quantization_type!r} is not implemented")
    real = weight.float() * quant_scale + quant_bias
    return conv(x, real, bias, strides, pad_type, pad, dilations, groups)


@op("conv_transpose")
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    pad: Ints | None = None,
    output_shape: Ints | None = None,
    pad_type: str = "valid",
    strides: Ints | None = None,
    dilations: Ints | None = None,
    groups: int = 1,
) -> Tensor:
    """`x` (n, C_in, *d), `weight` (C_in, C_out / groups, *k), `bias` (C_out)."""
    rank = spatial_rank(x)
    steps = sized(strides, rank, "strides", 1)
    spread = sized(dilations, rank, "dilations", 1)
    y = _TRANSPOSED[rank](x, weight, None, steps, 0, 0, groups, spread)
    full = list(y.shape[2:])
    if pad_type in ("same", "same_lower"):
        wanted = [size * step for size, step in zip(x.shape[2:], steps, strict=True)]
        surplus = [max(0, have - want) for have, want in zip(full, wanted, strict=True)]
        cut = [each // 2 if pad_type == "same" else each - each // 2 for each in surplus]
    else:
        amounts = paddings(pad_type, pad, full, full, steps)
        cut = [before for before, _ in amounts]
        wanted = [have - sum(pair) for have, pair in zip(full, amounts, strict=True)]
    if output_shape is not None:
        wanted = output_shape[-rank:]
    # Where more is wanted than the windows reach (output padding), nothing but the bias is there.
    ends = [(-before, before + want - have) for before, want, have in zip(cut, wanted, full, strict=True)]
    y = padded(y, ends)
    return y if bias is None else y + per_channel(bias, y)
