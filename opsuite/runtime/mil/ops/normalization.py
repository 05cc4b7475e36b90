"""Normalizations."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.activation import per_channel
from opsuite.runtime.mil.registry import Ints, Tensor, op


@op("batch_norm")
def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """`x` (n, C, *d), the others (C)."""
    scale = torch.rsqrt(variance + epsilon)
    if gamma is not None:
        scale = scale * gamma
    y = (x - per_channel(mean, x)) * per_channel(scale, x)
    return y if beta is None else y + per_channel(beta, x)


@op("instance_norm")
def instance_norm(x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, epsilon: float = 1e-5) -> Tensor:
    """`x` (n, C, *d): each channel of each image by its own mean and variance."""
    if x.dim() < 3:
        raise OpError(f"x: no spatial dimensions in {list(x.shape)}")
    y = _normalized(x, list(range(2, x.dim())), epsilon)
    if gamma is not None:
        y = y * per_channel(gamma, x)
    return y if beta is None else y + per_channel(beta, x)


@op("layer_norm")
def layer_norm(
    x: Tensor,
    axes: Ints | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """`gamma` and `beta` have the shape of `x` in the axes."""
    over = [axis % x.dim() for axis in (range(x.dim()) if axes is None else axes)]
    y = _normalized(x, over, epsilon)
    shape = [size if axis in over else 1 for axis, size in enumerate(x.shape)]
    if gamma is not None:
        y = y * gamma.reshape(shape)
    return y if beta is None else y + beta.reshape(shape)


def _normalized(x: Tensor, axes: list[int], epsilon: float) -> Tensor:
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + epsilon)


@op("l2_norm")
def l2_norm(x: Tensor, epsilon: float = 1e-6) -> Tensor:
    """By the root of the sum of squares of the last three dimensions."""
    if x.dim() < 3:
        raise OpError(f"x: rank 3 or more is wanted, not {x.dim()}")
    return x * torch.rsqrt(x.square().sum((-3, -2, -1), keepdim=True) + epsilon)


@op("local_response_norm")
def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    return F.local_response_norm(x, size, alpha, beta, k)
