"""The op of classifiers."""

from __future__ import annotations

from typing import Any

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, op


@op("classify")
def classify(probabilities: Tensor, classes: Any) -> tuple[Any, dict[Any, float]]:
    """The label of the greatest probability, and the probability of each label."""
    labels = classes.tolist() if isinstance(classes, torch.Tensor) else list(classes)
    labels = [each.item() if isinstance(each, torch.Tensor) else each for each in labels]
    values = probabilities.reshape(-1)
    if len(labels) != len(values):
        raise OpError(f"{len(values)} probabilities for {len(labels)} classes")
    label = labels[int(values.argmax())]
    chosen = torch.tensor(label, dtype=torch.int64) if isinstance(label, int) else label
    return chosen, dict(zip(labels, values.tolist(), strict=True))
