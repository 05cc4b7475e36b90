"""Activations."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, op


@op("relu")
def relu(x: Tensor) -> Tensor:
    return torch.relu(x)


@op("relu6")
def relu6(x: Tensor) -> Tensor:
    return torch.clamp(x, 0.0, 6.0)


@op("sigmoid")
def sigmoid(x: Tensor) -> Tensor:
    return torch.sigmoid(x)


@op("silu")
def silu(x: Tensor) -> Tensor:
    return F.silu(x)


@op("softplus")
def softplus(x: Tensor) -> Tensor:
    # torch's own softplus is linear from 20 on; the definition is not.
    return torch.logaddexp(x, torch.zeros_like(x))


@op("softsign")
def softsign(x: Tensor) -> Tensor:
    return F.softsign(x)


@op("softmax")
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    return torch.softmax(x, axis)


@op("clamped_relu")
def clamped_relu(x: Tensor, alpha: float, beta: float) -> Tensor:
    return torch.clamp(torch.where(x >= 0, x, alpha * x), max=beta)


@op("elu")
def elu(x: Tensor, alpha: float) -> Tensor:
    return torch.where(x > 0, x, alpha * torch.expm1(x))


@op("gelu")
def gelu(x: Tensor, mode: str = "EXACT") -> Tensor:
    if mode == "EXACT":
        return F.gelu(x)
    if mode == "TANH_APPROXIMATION":
        return F.gelu(x, approximate="tanh")
    if mode == "SIGMOID_APPROXIMATION":
        return x * torch.sigmoid(1.702 * x)
    raise OpError(f"mode: unknown flavour {mode!r}")


@op("leaky_relu")
def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    return torch.where(x >= 0, x, alpha * x)


@op("linear_activation")
def linear_activation(x: Tensor, alpha: float, beta: float) -> Tensor:
    return x * alpha + beta


@op("prelu")
def prelu(x: Tensor, alpha: Tensor) -> Tensor:
    return torch.where(x > 0, x, per_channel(alpha, x) * x)


@op("scaled_tanh")
def scaled_tanh(x: Tensor, alpha: float, beta: float) -> Tensor:
    return alpha * torch.tanh(beta * x)


@op("sigmoid_hard")
def sigmoid_hard(x: Tensor, alpha: float, beta: float) -> Tensor:
    return torch.clamp(alpha * x + beta, 0.0, 1.0)


@op("softplus_parametric")
def softplus_parametric(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    return per_channel(alpha, x) * softplus(per_channel(beta, x) * x)


@op("thresholded_relu")
def thresholded_relu(x: Tensor, alpha: float) -> Tensor:
    return torch.where(x >= alpha, x, torch.zeros_like(x))


def per_channel(vector: Tensor, x: Tensor) -> Tensor:
    """A vector over `x`'s second dimension, in a shape that broadcasts against `x`."""
    if vector.dim() != 1 or x.dim() < 2 or len(vector) not in (1, x.shape[1]):
        raise OpError(f"a vector of shape {list(vector.shape)} does not fit the channels of {list(x.shape)}")
    return vector.reshape(-1, *[1] * (x.dim() - 2))
