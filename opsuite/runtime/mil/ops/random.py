"""Random values. They are those of torch's generator: another implementation gives others of the same distribution."""

from __future__ import annotations

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.tensor_operation import bounded
from opsuite.runtime.mil.registry import Call, Ints, Tensor, op


def _generator(call: Call, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed) if seed >= 0 else call.generator


@op("random_bernoulli")
def random_bernoulli(call: Call, shape: Ints, prob: float = 0.5, seed: int = -1) -> Tensor:
    return (torch.rand(bounded(shape), generator=_generator(call, seed)) < prob).float()


@op("random_categorical")
def random_categorical(call: Call, x: Tensor, mode: str = "logits", size: int = 1, seed: int = -1) -> Tensor:
    if mode not in ("logits", "probs"):
        raise OpError(f"mode: unknown {mode!r}")
    weights = torch.softmax(x, -1) if mode == "logits" else x
    rows = weights.reshape(-1, weights.shape[-1])
    drawn = torch.multinomial(rows, size, replacement=True, generator=_generator(call, seed))
    return drawn.reshape(*x.shape[:-1], size).float()


@op("random_normal")
def random_normal(call: Call, shape: Ints, mean: float = 0.0, stddev: float = 1.0, seed: int = -1) -> Tensor:
    return torch.randn(bounded(shape), generator=_generator(call, seed)) * stddev + mean


@op("random_uniform")
def random_uniform(call: Call, shape: Ints, low: float = 0.0, high: float = 1.0, seed: int = -1) -> Tensor:
    return torch.rand(bounded(shape), generator=_generator(call, seed)) * (high - low) + low
