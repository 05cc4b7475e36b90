"""What each fix mends, beside what happens without it."""

import pytest
import torch
import torch.nn.functional as F
from coremltools.optimize.torch.quantization import LinearQuantizerConfig, ModuleLinearQuantizerConfig
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

from opsuite.flows.coreml import static_int8_config
from opsuite.pipeline.accuracy import measure
from opsuite.quantizer import CoreMLQuantizer, Fix
from opsuite.quantizer.fixes import ALL, NONE, parse_fixes

QUANTIZE = torch.ops.quantized_decomposed.quantize_per_tensor.default
CHANNELS = torch.ops.quantized_decomposed.dequantize_per_channel.default
X, INTEGERS = torch.randn(4, 4), torch.arange(16).reshape(4, 4)


def converted(captured, inputs, fixes=()):
    prepared = prepare_pt2e(captured, CoreMLQuantizer(static_int8_config(), fixes=fixes))
    prepared(*inputs)
    return convert_pt2e(prepared)


def count(model, target):
    return sum(node.target == target for node in model.graph.nodes)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda i: i + i.flip(0), (INTEGERS,)),
        (lambda i: F.relu(i * (i - 3)), (INTEGERS,)),
        (lambda i: i @ (i - 3), (INTEGERS,)),
    ],
    ids=["add", "mul+relu", "matmul"],
)
def test_integer_ops_are_left_alone(capture, function, inputs):
    with pytest.raises(NotImplementedError, match="'Long'"):
        converted(capture(function, *inputs), inputs)
    mended = converted(capture(function, *inputs), inputs, [Fix.INTEGER_TENSORS])
    assert count(mended, QUANTIZE) == 0
    assert torch.equal(mended(*inputs), function(*inputs))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool])
def test_of_mixed_operands_the_float_ones_are_quantized(capture, dtype):
    inputs = (X, INTEGERS.to(dtype))
    with pytest.raises((NotImplementedError, RuntimeError)):
        converted(capture(torch.mul, *inputs), inputs)
    mended = converted(capture(torch.mul, *inputs), inputs, ["integer_tensors"])
    assert count(mended, QUANTIZE) == 2
    assert measure(mended(*inputs), torch.mul(*inputs)).sqnr_db > 35


def test_a_batch_norm_that_counts_batches_can_be_trained(capture):
    """In training mode `num_batches_tracked += 1` is an add_ of an int64 tensor."""
    model, inputs = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU()), (torch.randn(2, 2, 4, 4),)

    def prepared(fixes=()):
        captured = capture(model, *inputs, training=True)
        return prepare_qat_pt2e(captured, CoreMLQuantizer(static_int8_config(), fixes=fixes))

    with pytest.raises(NotImplementedError, match="'Long'"):
        prepared()(*inputs)
    mended = prepared([Fix.INTEGER_TENSORS])
    before = mended.state_dict()["1.num_batches_tracked"].clone()
    mended(*inputs).sum().backward()
    assert mended.state_dict()["1.num_batches_tracked"] == before + 1


def test_an_operand_may_come_twice(capture):
    def function(x):
        return F.relu(x * x) @ x

    def inputs_of_product(model):
        (product,) = (node for node in model.graph.nodes if node.target == torch.ops.aten.mul.Tensor)
        return {node.name for node in product.all_input_nodes}

    assert inputs_of_product(converted(capture(function, X), (X,))) == {"inputs_0"}
    mended = converted(capture(function, X), (X,), [Fix.SAME_OPERAND])
    assert all(name.startswith("dequantize") for name in inputs_of_product(mended))
    assert measure(mended(X), function(X)).sqnr_db > 30


def test_a_shared_weight_is_quantized_at_every_use(capture):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(F.relu(self.layer(x)) - 1)

    model = Shared()
    assert count(converted(capture(model, X), (X,)), CHANNELS) == 1
    mended = converted(capture(model, X), (X,), [Fix.SHARED_WEIGHTS])
    layers = [node for node in mended.graph.nodes if node.target == torch.ops.aten.linear.default]
    assert [node.args[1].target for node in layers] == [CHANNELS, CHANNELS]
    assert measure(mended(X), model(X)).sqnr_db > 30


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.fc = Inner(), nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.inner(x) - 1)


UNSIGNED = ModuleLinearQuantizerConfig(weight_dtype="quint8")


@pytest.mark.parametrize(
    ("parts", "strict", "without"),
    [
        ({"module_name_configs": {"inner": UNSIGNED}}, True, None),
        ({"module_name_configs": {"inner.fc": UNSIGNED}}, False, None),
        ({"module_type_configs": {Inner: UNSIGNED}}, True, torch.int8),
        ({"module_type_configs": {Inner: UNSIGNED}}, False, torch.int8),
    ],
)
def test_a_configuration_for_a_module_reaches_its_layers(capture, parts, strict, without):
    config = LinearQuantizerConfig(ModuleLinearQuantizerConfig(), **parts)

    def weights(fixes=()):
        annotated = CoreMLQuantizer(config, fixes=fixes).annotate(capture(Outer(), X, strict=strict))
        layers = [node for node in annotated.graph.nodes if node.target == torch.ops.aten.linear.default]
        specs = [getattr(node.meta.get("quantization_annotation"), "input_qspec_map", {}) for node in layers]
        return [found[node.args[1]].dtype if found else None for node, found in zip(layers, specs, strict=True)]

    assert weights() == [without, torch.int8]
    assert weights([Fix.MODULE_CONFIGS]) == [torch.uint8, torch.int8]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_precision_model_is_refused_in_one_sentence(capture, dtype):
    captured = capture(nn.Linear(4, 4).to(dtype), X.to(dtype))
    with pytest.raises(
        ValueError, match=r"^\w+ is b?float16; static int8 accepts float32 models: capture model\.float\(\) and [^\n]*$"
    ):
        CoreMLQuantizer(static_int8_config(), fixes=[Fix.HALF_PRECISION]).annotate(captured)
    CoreMLQuantizer(static_int8_config()).annotate(captured)


@pytest.mark.parametrize(
    ("setting", "accepted"),
    [
        ({"weight_dtype": "qint4"}, "accepted are qint8, quint8, float32"),
        ({"algorithm": "learnable"}, "accepted is 'vanilla'"),
        ({"milestones": [0, 1, 2, 3]}, "accepted is None"),
    ],
)
def test_a_setting_without_effect_is_refused(capture, setting, accepted):
    part = ModuleLinearQuantizerConfig(**setting)
    captured = capture(nn.Linear(4, 4), X)
    for config, label in (
        (LinearQuantizerConfig(part), "global"),
        (LinearQuantizerConfig(part, module_name_configs={"fc": part}), "module name fc"),
        (LinearQuantizerConfig(part, module_type_configs={nn.Linear: part}), "module type Linear"),
    ):
        with pytest.raises(ValueError, match=f"^{label}: .*{accepted}"):
            CoreMLQuantizer(config, fixes=[Fix.UNSUPPORTED_CONFIG]).annotate(captured)
        CoreMLQuantizer(config).annotate(captured)


def test_fixes_by_name():
    assert parse_fixes("all") == ALL == frozenset(Fix)
    assert parse_fixes("none") == parse_fixes(()) == NONE == CoreMLQuantizer(static_int8_config()).fixes
    assert parse_fixes("same_operand") == parse_fixes(["same_operand"]) == {Fix.SAME_OPERAND}


def test_an_unknown_fix_is_told_which_there_are():
    with pytest.raises(ValueError, match=r"'faster'.*'integer_tensors', 'same_operand'.*'all' or 'none'"):
        CoreMLQuantizer(static_int8_config(), fixes=["faster"])
