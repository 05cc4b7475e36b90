"""Torch modules converted to ML Programs, for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def convert(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], target: str = "iOS17", half: bool = True) -> Any:
    """The module as an `MLModel` with inputs x0, x1, ..., which takes and gives fp32 (int32 for integers)."""
    import coremltools as ct

    kinds = {torch.int32: np.int32, torch.int64: np.int32}
    return ct.convert(
        torch.jit.trace(module.eval(), inputs),
        inputs=[
            ct.TensorType(name=f"x{place}", shape=each.shape, dtype=kinds.get(each.dtype, np.float32))
            for place, each in enumerate(inputs)
        ],
        convert_to="mlprogram",
        skip_model_load=True,
        minimum_deployment_target=getattr(ct.target, target),
        compute_precision=ct.precision.FLOAT16 if half else ct.precision.FLOAT32,
    )


def named(inputs: tuple[torch.Tensor, ...]) -> dict[str, np.ndarray]:
    return {f"x{place}": each.numpy() for place, each in enumerate(inputs)}
