"""The Core ML flows: float, and static int8, from one factory."""

from __future__ import annotations

import functools
from typing import Any

from opsuite.flows.flow import FLOWS, Flow, Requirement
from opsuite.pipeline.accuracy import HALF_PRECISION, STATIC_INT8, Thresholds


def _partitioners(deployment_target: str) -> list[Any]:
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    specs = CoreMLBackend.generate_compile_specs(minimum_deployment_target=ct.target[deployment_target])
    return [CoreMLPartitioner(compile_specs=specs)]


def static_int8_config() -> Any:
    """Symmetric: quint8 activations, qint8 weights per channel."""
    import coremltools as ct
    import torch

    return ct.optimize.torch.quantization.LinearQuantizerConfig(
        global_config=ct.optimize.torch.quantization.ModuleLinearQuantizerConfig(
            quantization_scheme="symmetric",
            activation_dtype=torch.quint8,
            weight_dtype=torch.qint8,
            weight_per_channel=True,
        )
    )


def _quantizer() -> Any:
    from opsuite.quantizer import CoreMLQuantizer

    return CoreMLQuantizer(static_int8_config())


def coreml_flow(name: str, summary: str, target: str, thresholds: Thresholds, quantized: bool = False) -> Flow:
    """A Core ML flow: compute precision fp16, for `target` and newer."""
    return Flow(
        name,
        backend="coreml",
        summary=summary,
        quantizer=_quantizer if quantized else None,
        partitioners=functools.partial(_partitioners, target),
        delegate="CoreMLBackend",
        deployment_target=target,
        requires=(
            Requirement("coremltools", "pip install 'coremltools>=9,<10'"),
            Requirement("executorch.backends.apple.coreml", "pip install 'executorch>=1.5.1'"),
        ),
        thresholds=thresholds,
    )


COREML = FLOWS.register(coreml_flow("coreml", "Core ML, fp16", "iOS15", HALF_PRECISION))
COREML_STATIC_INT8 = FLOWS.register(
    coreml_flow("coreml_static_int8", "Core ML, static int8", "iOS17", STATIC_INT8, quantized=True)
)
