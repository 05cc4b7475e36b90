"""Small things that several stages do with inputs and outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree


def copied(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that a model may write into: detached copies with the same strides."""
    return pytree.tree_map_only(torch.Tensor, lambda x: x.detach().clone(memory_format=torch.preserve_format), inputs)


def fresh(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """A standard normal draw of the inputs' shapes, dtypes and strides, as the peer tests with."""
    return pytree.tree_map_only(torch.Tensor, lambda x: torch.empty_like(x).copy_(torch.randn(x.shape)), inputs)


def flat_outputs(outputs: Any) -> list[torch.Tensor]:
    """The tensors of a model's outputs, in order; numbers as rank-0 tensors."""
    return [
        (leaf.detach().clone() if isinstance(leaf, torch.Tensor) else torch.as_tensor(leaf))
        for leaf in pytree.tree_leaves(outputs)
        if leaf is not None
    ]
