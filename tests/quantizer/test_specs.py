import pytest
import torch
from coremltools.optimize.torch.quantization import ModuleLinearQuantizerConfig
from torch.fx import Graph
from torchao.quantization.pt2e.observer import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)

from opsuite.quantizer.specs import Specs, activation_output_spec, specs_from_config

aten = torch.ops.aten


def observer(spec):
    return spec.observer_or_fake_quant_ctr.p.keywords["observer"]


@pytest.mark.parametrize("config", [None, ModuleLinearQuantizerConfig(weight_dtype="float32")])
def test_no_configuration_and_float_weights_quantize_nothing(config):
    assert specs_from_config(config) == Specs()


def test_the_default_is_symmetric_with_moving_averages():
    specs = specs_from_config(ModuleLinearQuantizerConfig())
    assert (specs.activation.dtype, specs.activation.qscheme) == (torch.uint8, torch.per_tensor_symmetric)
    assert (specs.weight.dtype, specs.weight.qscheme) == (torch.int8, torch.per_channel_symmetric)
    assert observer(specs.activation) is MovingAverageMinMaxObserver
    assert observer(specs.weight) is MovingAveragePerChannelMinMaxObserver


def test_each_option_is_taken():
    config = ModuleLinearQuantizerConfig(
        quantization_scheme="affine",
        weight_dtype="quint8",
        weight_per_channel=False,
        weight_observer="min_max",
        activation_observer="min_max",
    )
    specs = specs_from_config(config)
    assert specs.activation.qscheme == specs.weight.qscheme == torch.per_tensor_affine
    assert specs.weight.dtype == torch.uint8
    assert observer(specs.activation) is observer(specs.weight) is MinMaxObserver


def test_weight_only():
    specs = specs_from_config(ModuleLinearQuantizerConfig(activation_dtype="float32", weight_observer="min_max"))
    assert specs.activation is None
    assert observer(specs.weight) is PerChannelMinMaxObserver


def test_an_observer_that_pt2e_lacks_is_refused_with_those_that_it_has():
    config = ModuleLinearQuantizerConfig(activation_observer="ema_min_max")
    with pytest.raises(
        ValueError, match=r"^observer type 'ema_min_max' .*accepted are min_max, moving_average_min_max$"
    ):
        specs_from_config(config)


@pytest.mark.parametrize(
    ("target", "arguments", "qscheme"),
    [
        (aten.relu.default, (), torch.per_tensor_affine),
        (aten.relu6_.default, (), torch.per_tensor_affine),
        (aten.hardsigmoid.default, (), torch.per_tensor_affine),
        (aten.hardtanh.default, (0.0, 6.0), torch.per_tensor_affine),
        (aten.hardtanh.default, (-1.0, 1.0), torch.per_tensor_symmetric),
        (aten.gelu.default, (), torch.per_tensor_symmetric),
    ],
)
def test_outputs_that_are_not_negative_get_affine_qparams(target, arguments, qscheme):
    graph = Graph()
    node = graph.call_function(target, (graph.placeholder("x"), *arguments))
    spec = specs_from_config(ModuleLinearQuantizerConfig()).activation
    assert activation_output_spec(node, spec).qscheme == qscheme
    assert activation_output_spec(node, None) is None


def test_a_hardtanh_without_bounds_raises_as_it_does_with_executorch():
    graph = Graph()
    node = graph.call_function(aten.hardtanh.default, (graph.placeholder("x"),))
    with pytest.raises(IndexError):
        activation_output_spec(node, specs_from_config(ModuleLinearQuantizerConfig()).activation)


def test_tanh_stays_symmetric_under_the_affine_scheme():
    graph = Graph()
    node = graph.call_function(aten.tanh.default, (graph.placeholder("x"),))
    spec = specs_from_config(ModuleLinearQuantizerConfig(quantization_scheme="affine")).activation
    assert activation_output_spec(node, spec).qscheme == torch.per_tensor_symmetric
