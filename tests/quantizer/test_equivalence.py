"""The comparison of two quantizers: whatever differs has to be seen."""

import copy

import pytest
import torch
from torch import nn
from torch.fx import Graph
from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, SharedQuantizationSpec

from opsuite.flows.coreml import static_int8_config
from opsuite.quantizer import CoreMLQuantizer
from opsuite.quantizer.equivalence import (
    Quantized,
    describe_annotations,
    describe_module,
    describe_spec,
    differences,
    quantize,
)
from opsuite.quantizer.specs import specs_from_config

X = torch.randn(2, 4)
ACTIVATION = specs_from_config(static_int8_config().global_config).activation


@pytest.fixture(scope="module")
def result(capture):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return quantize(capture(model, X), (X,), CoreMLQuantizer(static_int8_config()))


def test_equal_results_do_not_differ(result):
    assert differences(result, copy.deepcopy(result)) == []
    assert result.annotated == 4
    assert all((result.annotations, result.prepared, result.converted))


@pytest.mark.parametrize("stage", ["annotations", "prepared", "converted"])
def test_each_entry_of_each_stage_counts(result, stage):
    for where in getattr(result, stage):
        other = copy.deepcopy(result)
        getattr(other, stage)[where] = "planted"
        (difference,) = differences(other, result)
        assert (difference.where, difference.ours) == (where, "'planted'")
        assert str(difference).startswith(f"{difference.aspect} of {where}:\n")
        del getattr(other, stage)[where]
        assert differences(other, result)[0].ours == "'absent'"


def test_the_order_counts(result):
    other = copy.deepcopy(result)
    other.converted = dict(reversed(result.converted.items()))
    assert [difference.where for difference in differences(other, result)] == ["order"]


def holding(constant):
    module = torch.fx.GraphModule(nn.Module(), Graph())
    module.register_buffer("w", constant)
    return module


def test_one_bit_of_a_constant_counts():
    module = holding(torch.zeros(3))
    before = describe_module(module)
    module.w[1] = -0.0
    assert [where for where, value in describe_module(module).items() if value != before[where]] == ["constant w"]


def test_describing_leaves_observers_as_they_were():
    """A tensor that numpy has seen cannot be resized, and observers resize theirs when they first see data."""
    module = holding(torch.zeros(0))
    describe_module(module)
    module.w.resize_(4)


def test_a_failure_on_one_side_differs():
    failed = Quantized(errors={"prepare": ValueError("no")})
    (difference,) = differences(failed, Quantized())
    assert (difference.aspect, difference.ours) == ("prepare", "ValueError('no')")
    assert differences(Quantized(), failed)
    assert differences(failed, Quantized(errors={"prepare": IndexError()})) == []


def test_later_failures_differ_by_their_words():
    one, other = (Quantized(errors={"calibrate": ValueError(text)}) for text in ("a", "b"))
    assert [difference.aspect for difference in differences(one, other)] == ["error"]
    assert differences(one, copy.deepcopy(one)) == []


@pytest.mark.parametrize(
    "changed",
    [
        lambda a: a.input_qspec_map.clear(),
        lambda a: setattr(a, "output_qspec", None),
        lambda a: setattr(a, "output_qspec", SharedQuantizationSpec("node")),
        lambda a: setattr(a, "_annotated", False),
        lambda a: setattr(a, "allow_implicit_sharing", False),
    ],
)
def test_every_part_of_an_annotation_is_described(changed):
    graph = Graph()
    node = graph.call_function(torch.relu, (graph.placeholder("x"),))
    annotation = node.meta["quantization_annotation"] = QuantizationAnnotation(
        input_qspec_map={node.args[0]: ACTIVATION}, output_qspec=ACTIVATION, _annotated=True
    )
    before = describe_annotations(graph)
    changed(annotation)
    assert describe_annotations(graph) != before


def test_specs_are_told_apart_by_their_observers_arguments():
    config = static_int8_config().global_config
    config.activation_observer = "min_max"
    assert describe_spec(specs_from_config(config).activation) != describe_spec(ACTIVATION)
    assert describe_spec(specs_from_config(static_int8_config().global_config).activation) == describe_spec(ACTIVATION)
