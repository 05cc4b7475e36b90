"""executorch's quantizer and torchao's fold with and without acceleration: the same graphs, and how many exports."""

import copy

import pytest
import torch
import torch.nn.functional as F
from models import build, quantize

import opsuite
from opsuite.accelerate import coreml_quantizer, qat_fold
from opsuite.accelerate.coreml_quantizer import needed_ops, ops_of

UTILS = "executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils"
PARTS = ["coreml-quantizer", "qat-fold"]


@pytest.fixture
def one_activation(monkeypatch):
    """Fewer patterns, so that the side without acceleration takes seconds."""
    monkeypatch.setattr(f"{UTILS}._supported_activations", (F.relu,))
    monkeypatch.setattr(f"{UTILS}._supported_activations_no_inplace", ())


@pytest.fixture
def exports(monkeypatch):
    """Exports of patterns so far, whoever asked for them."""
    calls = []
    export = torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **kwargs: calls.append(args) or export(*args, **kwargs))
    return calls


def same_graphs(one, other):
    assert one.code == other.code
    state, expected = one.state_dict(), other.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[key], expected[key]) for key in state)


def test_quantized_graphs_and_random_numbers_are_the_same(one_activation, exports):
    module, inputs = build("conv")
    expected = quantize(module, inputs)
    random = torch.rand(3)
    assert len(exports) > 40
    exports.clear()
    with opsuite.accelerate(PARTS):
        same_graphs(quantize(module, inputs), expected)
        assert torch.equal(torch.rand(3), random)
        first = len(exports)
        quantize(module, inputs)
    assert first < 10
    # The model itself is the only thing exported for a second one.
    assert len(exports) == first + 1


def test_a_pattern_asked_for_outside_annotate_is_a_graph():
    from executorch.backends.apple.coreml.quantizer import _coreml_quantizer_utils as utils

    with opsuite.accelerate(PARTS):
        first, second = utils.get_conv_pattern(2, F.relu), utils.get_conv_pattern(2, F.relu)
    assert isinstance(first, torch.fx.GraphModule)
    assert first is not second
    assert first.code == second.code
    assert [node.target for node in first.graph.nodes] == [node.target for node in second.graph.nodes]


@pytest.mark.slow
def test_every_pattern_holds_the_ops_it_is_said_to_need(monkeypatch):
    module, inputs = build("conv")
    missing, seen = [], 0
    from executorch.backends.apple.coreml.quantizer import _coreml_quantizer_utils as utils

    build_graph = utils._get_aten_graph_module

    def check(pattern, example_inputs, *args):
        nonlocal seen
        seen += 1
        graph = build_graph(pattern, example_inputs, *args)
        needed, held = needed_ops(pattern), ops_of(graph.graph)
        if not needed or not all(held & group for group in needed):
            missing.append((needed, held))
        return graph

    monkeypatch.setattr(utils, "_get_aten_graph_module", check)
    quantize(module, inputs)
    assert seen == 405
    assert not missing


@pytest.mark.slow
@pytest.mark.parametrize("qat", [False, True], ids=["ptq", "qat"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_graphs_with_all_patterns_and_batch_norm_are_the_same(qat, bias):
    module, inputs = build("norm")
    module = type(module)(bias).eval()
    expected = quantize(copy.deepcopy(module), inputs, qat)
    with opsuite.accelerate(PARTS):
        same_graphs(quantize(copy.deepcopy(module), inputs, qat), expected)
        same_graphs(quantize(copy.deepcopy(module), inputs, qat), expected)


def test_a_left_over_batch_norm_exports_no_fold_pattern(one_activation, exports):
    module, inputs = build("norm")
    with opsuite.accelerate(PARTS):
        builds = qat_fold.CACHE.builds
        converted = quantize(module.first, inputs)
    assert qat_fold.CACHE.builds == builds
    assert torch.ops.aten.batch_norm.default in {node.target for node in converted.graph.nodes}


def test_a_model_that_takes_square_roots_still_meets_the_fold(one_activation):
    """The ops of a fold pattern are all there, so it is built, tried and does not match."""

    class Rooted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.conv = torch.nn.BatchNorm2d(3), torch.nn.Conv2d(3, 3, 1)

        def forward(self, x):
            return self.norm(torch.sqrt(self.conv(x).abs()) / 2 * x)

    with opsuite.accelerate(PARTS):
        builds = qat_fold.CACHE.builds
        quantize(Rooted().eval(), (torch.randn(1, 3, 4, 4),))
        first = qat_fold.CACHE.builds
        quantize(Rooted().eval(), (torch.randn(1, 3, 4, 4),))
        # Only the patterns of conv2d, and those once.
        assert builds < first <= builds + 24
        assert qat_fold.CACHE.builds == first


def test_undo_forgets_the_patterns(one_activation):
    with opsuite.accelerate(PARTS):
        quantize(*build("conv"))
        assert len(coreml_quantizer.CACHE) > 0
    assert len(coreml_quantizer.CACHE) == 0


def test_the_table_exports_no_pattern_and_gives_the_same_graph(one_activation, exports):
    pytest.importorskip("opsuite.quantizer")
    module, inputs = build("conv")
    expected = quantize(module, inputs)
    exports.clear()
    with opsuite.accelerate(PARTS, patterns="table") as on:
        assert on.applied == PARTS
        same_graphs(quantize(module, inputs), expected)
    assert len(exports) == 1
