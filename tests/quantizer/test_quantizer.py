"""Ours against the installed executorch's, and what ours promises beyond equality."""

import operator

import pytest
import torch
import torch.nn.functional as F
from coremltools.optimize.torch.quantization import LinearQuantizerConfig, ModuleLinearQuantizerConfig
from torch import nn
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from opsuite.flows.coreml import static_int8_config
from opsuite.pipeline.accuracy import measure
from opsuite.quantizer import CoreMLQuantizer
from opsuite.quantizer.equivalence import compare

IMAGE = torch.randn(2, 4, 6, 6)
Part = ModuleLinearQuantizerConfig


class Block(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1, bias=bias), nn.BatchNorm2d(4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)) + x)


class Net(nn.Module):
    """Repeated modules, branches, a shared layer, in-place ops, pools, dead code, and ops that have no pattern."""

    def __init__(self):
        super().__init__()
        self.one, self.two = Block(), Block(bias=False)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(36, 8)
        self.last = nn.Sequential(nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8), nn.Sigmoid())
        self.free = nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.two(self.one(self.free(x)))
        unused = F.relu(y)  # noqa: F841
        y += F.sigmoid(self.one.conv(x))
        y = self.pool(y).flatten(1)
        y = F.softmax(self.head(y), -1)
        return self.last(y), torch.flatten(torch.matmul(y, y.T.clone())) * 2


CONFIGS = {
    "static int8": static_int8_config(),
    "affine, per tensor": LinearQuantizerConfig(Part(quantization_scheme="affine", weight_per_channel=False)),
    "weight only": LinearQuantizerConfig(Part(activation_dtype="float32", weight_observer="min_max")),
    "by name": LinearQuantizerConfig(Part(), module_name_configs={"one": None, "last.0": Part(weight_dtype="float32")}),
    "by type": LinearQuantizerConfig(
        None, module_type_configs={nn.Conv2d: Part(), operator.iadd: Part(activation_observer="min_max")}
    ),
    "by both": LinearQuantizerConfig(
        Part(), module_type_configs={Block: None}, module_name_configs={"two": Part(weight_dtype="quint8")}
    ),
}


@pytest.mark.parametrize("qat", [False, True], ids=["ptq", "qat"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_annotations_and_converted_graphs_equal_executorchs(oracle, capture, config, qat):
    compared = compare(capture(Net(), IMAGE, training=qat), (IMAGE,), config, qat=qat)
    assert compared.differences == ()
    # In training mode a batch norm counts its batches, in an int64 tensor that gets a fake quantizer too.
    assert list(compared.ours.errors) == (["calibrate"] if qat and compared.ours.errors else [])
    assert compared.ours.annotated > 10
    assert compared.ours.converted


INTEGERS = torch.arange(4)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda i: i + i.flip(0), (INTEGERS,)),
        (lambda x, i: x * i, (torch.randn(4), INTEGERS)),
    ],
)
def test_what_fails_with_executorch_fails_alike(oracle, capture, function, inputs):
    compared = compare(capture(function, *inputs), inputs, static_int8_config())
    assert compared.differences == ()
    assert "Long" in str(compared.ours.errors["calibrate"])
    # Converted all the same, with what the observers saw.
    assert compared.ours.converted


def test_an_observer_that_is_missing_fails_alike(oracle, capture):
    config = LinearQuantizerConfig(Part(weight_observer="ema_min_max"))
    compared = compare(capture(nn.ReLU(), IMAGE), (IMAGE,), config)
    assert compared.differences == ()
    assert "ema_min_max" in str(compared.ours.errors["prepare"])


@pytest.fixture
def counted(monkeypatch):
    """How often things are done that cost much."""
    counts = {"export": 0, "clean": 0, "recompile": 0}

    def counting(name, original):
        def call(*args, **kwargs):
            counts[name] += 1
            return original(*args, **kwargs)

        return call

    def start():
        monkeypatch.setattr(torch.export, "export", counting("export", torch.export.export))
        monkeypatch.setattr(
            torch.fx.Graph, "eliminate_dead_code", counting("clean", torch.fx.Graph.eliminate_dead_code)
        )
        monkeypatch.setattr(GraphModule, "recompile", counting("recompile", GraphModule.recompile))
        return counts

    return start


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_annotate_exports_nothing_and_cleans_and_recompiles_once(capture, counted, config):
    captured = capture(Net(), IMAGE)
    counts = counted()
    CoreMLQuantizer(config).annotate(captured)
    assert counts == {"export": 0, "clean": 1, "recompile": 1}


def test_the_quantized_model_is_near_the_float_one(capture):
    model = nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 4), nn.Sigmoid())
    prepared = prepare_pt2e(capture(model, IMAGE), CoreMLQuantizer(static_int8_config()))
    prepared(IMAGE)
    converted = convert_pt2e(prepared)
    targets = [node.target for node in converted.graph.nodes]
    # The image, two weights, and the results of relu, pool and sigmoid; flatten shares the pool's.
    assert targets.count(torch.ops.quantized_decomposed.quantize_per_tensor.default) >= 4
    assert measure(converted(IMAGE), model(IMAGE)).sqnr_db > 35


def test_a_quantizer_can_be_used_again(capture):
    quantizer = CoreMLQuantizer(static_int8_config())
    first, second = (quantizer.annotate(capture(Net(), IMAGE)) for _ in range(2))
    annotated = [
        {n.name for n in model.graph.nodes if "quantization_annotation" in n.meta} for model in (first, second)
    ]
    assert annotated[0] == annotated[1] != set()
    assert {node for d in quantizer.decisions.decisions for node in d.nodes} <= set(second.graph.nodes)


def test_the_results_of_a_pool_are_taken_in_graph_order(capture):
    """Values and indices are both used: the values get the qparams, in every process."""

    def function(x, y):
        values, indices = F.max_pool2d(F.relu(x + y), 2, return_indices=True)
        return values, indices

    captured = CoreMLQuantizer(static_int8_config()).annotate(capture(function, IMAGE, IMAGE + 1))
    shared = [n for n in captured.graph.nodes if n.target is operator.getitem and "quantization_annotation" in n.meta]
    assert [node.args[1] for node in shared] == [0]
