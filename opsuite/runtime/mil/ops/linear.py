"""Matrix products."""

from __future__ import annotations

import math

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, Tensors, op, since


@op("linear")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x` (*d, D_in), `weight` (D_out, D_in), `bias` (D_out)."""
    product = matmul(x, weight.T)
    return product if bias is None else product + bias


@op("matmul")
def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """Products of the last two dimensions, the others broadcast. A vector is not transposed."""
    if transpose_x and x.dim() > 1:
        x = x.transpose(-1, -2)
    if transpose_y and y.dim() > 1:
        y = y.transpose(-1, -2)
    # From iOS17 on one operand may be of integers.
    common = torch.promote_types(x.dtype, y.dtype)
    return torch.matmul(x.to(common), y.to(common))


@op("einsum")
def einsum(values: Tensors, equation: str) -> Tensor:
    if len(values) != 2:
        raise OpError(f"values: two tensors are wanted, not {len(values)}")
    return torch.einsum(equation, *values)


@op("scaled_dot_product_attention", opsets=since("CoreML8"))
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`query` (B, *, L, E), `key` (B, *, S, E), `value` (B, *, S, EV); a boolean mask says what takes part."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        boolean = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if boolean else scores + attn_mask
    return torch.softmax(scores, -1) @ value
