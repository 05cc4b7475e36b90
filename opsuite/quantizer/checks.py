"""Refusals in one sentence each, for what would otherwise be ignored here or fail much later."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph

_LOW_PRECISION = (torch.float16, torch.bfloat16)


def check_config(config: Any, label: str) -> None:
    """Refuses settings of a `ModuleLinearQuantizerConfig` that PT2E quantization cannot honour.

    Raises:
        ValueError: names the setting and what is accepted.
    """
    if config is None:
        return
    if config.weight_n_bits not in (8, 32):
        raise ValueError(
            f"{label}: weight_dtype of {config.weight_n_bits} bits is not supported; "
            "accepted are qint8, quint8, float32"
        )
    if config.algorithm != "vanilla":
        raise ValueError(f"{label}: algorithm {config.algorithm!r} is not supported; accepted is 'vanilla'")
    if config.milestones is not None:
        raise ValueError(
            f"{label}: milestones are not supported; accepted is None (switch observers with torchao's enable_observer)"
        )


def check_precision(graph: Graph) -> None:
    """Refuses a graph that computes in half precision.

    Raises:
        ValueError: names the first such node.
    """
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.dtype in _LOW_PRECISION:
            dtype = str(value.dtype).removeprefix("torch.")
            raise ValueError(
                f"{node.name} is {dtype}; static int8 accepts float32 models: capture model.float() and float32 inputs"
            )
