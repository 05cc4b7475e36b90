"""From a coremltools configuration to the quantization specs of PT2E."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torchao.quantization.pt2e.fake_quantize import FakeQuantize
from torchao.quantization.pt2e.observer import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import QuantizationSpec

aten = torch.ops.aten

# (observer type, per channel) -> observer
OBSERVERS: dict[tuple[str, bool], type] = {
    ("min_max", False): MinMaxObserver,
    ("min_max", True): PerChannelMinMaxObserver,
    ("moving_average_min_max", False): MovingAverageMinMaxObserver,
    ("moving_average_min_max", True): MovingAveragePerChannelMinMaxObserver,
}

# (quantization scheme, per channel) -> qscheme
QSCHEMES: dict[tuple[str, bool], torch.qscheme] = {
    ("symmetric", False): torch.per_tensor_symmetric,
    ("symmetric", True): torch.per_channel_symmetric,
    ("affine", False): torch.per_tensor_affine,
    ("affine", True): torch.per_channel_affine,
}

# PT2E names the storage dtype of quantized values, coremltools the quantized tensor dtype.
STORAGE_DTYPES: dict[torch.dtype, torch.dtype] = {torch.quint8: torch.uint8, torch.qint8: torch.int8}

# The qscheme of an output whose range follows from the activation, whatever the configured scheme.
ACTIVATION_QSCHEMES: dict[Any, torch.qscheme] = {
    aten.tanh.default: torch.per_tensor_symmetric,
    aten.tanh_.default: torch.per_tensor_symmetric,
    aten.sigmoid.default: torch.per_tensor_affine,
    aten.sigmoid_.default: torch.per_tensor_affine,
    aten.hardsigmoid.default: torch.per_tensor_affine,
    aten.hardsigmoid_.default: torch.per_tensor_affine,
    aten.relu.default: torch.per_tensor_affine,
    aten.relu_.default: torch.per_tensor_affine,
    aten.relu6.default: torch.per_tensor_affine,
    aten.relu6_.default: torch.per_tensor_affine,
}

_HARDTANH = (aten.hardtanh.default, aten.hardtanh_.default)


@dataclass(frozen=True)
class Specs:
    """The specs of one configuration: for input and output activations, and for weights. None leaves a tensor float."""

    activation: QuantizationSpec | None = None
    weight: QuantizationSpec | None = None


def specs_from_config(config: Any) -> Specs:
    """The specs of a coremltools `ModuleLinearQuantizerConfig`; without a config, or with float32 weights, none.

    Raises:
        ValueError: an observer type that PT2E has no observer for; the message names those that it has.
    """
    if config is None or config.weight_dtype == torch.float32:
        return Specs()
    activation = None
    scheme = config.quantization_scheme.value
    if config.activation_dtype != torch.float32:
        activation = _spec(config.activation_observer.value, config.activation_dtype, scheme, per_channel=False)
    weight = _spec(config.weight_observer.value, config.weight_dtype, scheme, per_channel=config.weight_per_channel)
    return Specs(activation, weight)


def _spec(observer_type: str, dtype: torch.dtype, scheme: str, per_channel: bool) -> QuantizationSpec:
    observer = OBSERVERS.get((observer_type, per_channel))
    if observer is None:
        accepted = ", ".join(sorted({name for name, _ in OBSERVERS}))
        raise ValueError(f"observer type {observer_type!r} is not supported; accepted are {accepted}")
    qscheme = QSCHEMES[scheme, per_channel]
    storage = STORAGE_DTYPES.get(dtype, dtype)
    constructor = FakeQuantize.with_args(observer=observer, dtype=storage, qscheme=qscheme)
    return QuantizationSpec(dtype=storage, observer_or_fake_quant_ctr=constructor, qscheme=qscheme)


def activation_output_spec(node: torch.fx.Node, spec: QuantizationSpec | None) -> QuantizationSpec | None:
    """`spec` for the output of the activation `node`.

    Outputs of ReLU and sigmoid kinds are not negative, so they get affine qparams even under the symmetric scheme;
    tanh gets symmetric ones. The observer's own arguments stay as they are.

    Raises:
        IndexError: a hardtanh without explicit bounds, which tell whether it is a ReLU6.
    """
    if spec is None:
        return None
    qscheme = ACTIVATION_QSCHEMES.get(node.target)
    if node.target in _HARDTANH and node.args[1] == 0 and node.args[2] == 6:
        qscheme = torch.per_tensor_affine
    if qscheme is None:
        return spec
    return QuantizationSpec(
        dtype=spec.dtype, observer_or_fake_quant_ctr=spec.observer_or_fake_quant_ctr, qscheme=qscheme
    )
