"""Values that outlive an operation: states of a model, and lists."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from opsuite.runtime.mil.program import TensorType


@dataclass
class State:
    """A state of a model: `value` is replaced when the program updates it, and lives on between predictions."""

    type: TensorType
    value: torch.Tensor


@dataclass(frozen=True)
class ListValue:
    """A list of tensors of one shape. Operations make new lists.

    Attributes:
        elements: None for one that is not written yet, where `blank` is not known.
        dynamic: whether writing beyond its end makes it longer.
        blank: what an element is until it is written: zeros.
    """

    elements: tuple[torch.Tensor | None, ...]
    dynamic: bool
    blank: torch.Tensor | None = None
