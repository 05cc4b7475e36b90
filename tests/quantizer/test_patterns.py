import pytest
import torch
from torch.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

from opsuite.quantizer.pattern_models import pattern_model
from opsuite.quantizer.patterns import ACTIVATIONS, CORES, FAMILIES, PATTERNS, Key, Rule, parse_key, pattern_graph

SOME = ("conv2d", "linear+batch_norm", "conv1d+batch_norm+relu_", "linear+hardswish_", "add_+gelu", "matmul+relu6_")


def test_the_table_holds_every_combination_once():
    weighted = [core for core in CORES.values() if core.rule is Rule.WEIGHTED]
    activated = sum(2 if activation.in_place else 1 for activation in ACTIVATIONS.values())
    assert len(PATTERNS) == (2 * len(weighted) + (len(CORES) - len(weighted))) * (1 + activated) == 351
    assert [pattern.rank for pattern in PATTERNS.values()] == list(range(351))
    assert len({str(key) for key in PATTERNS}) == 351


def test_longer_patterns_of_an_op_come_before_its_bare_one():
    for core in CORES:
        ranks = {key: pattern.rank for key, pattern in PATTERNS.items() if key.core == core and not key.batch_norm}
        assert max(ranks, key=ranks.__getitem__) == Key(core)


def test_in_place_forms_come_first():
    assert PATTERNS[Key("conv2d", activation="relu", in_place=True)].rank < PATTERNS[Key("conv2d", False, "relu")].rank


def test_no_source_function_is_in_two_families():
    # Within a family two names may be of one function: F.avg_pool1d is torch.avg_pool1d.
    sources = [source for family in FAMILIES for source in set(family.sources)]
    assert len(sources) == len(set(sources))


def test_a_key_is_read_as_it_is_written():
    assert [parse_key(str(key)) for key in PATTERNS] == list(PATTERNS)


@pytest.mark.parametrize("text", ["conv4d", "add+batch_norm", "conv2d+gelu_", "relu", ""])
def test_an_unknown_key_is_told_what_there_is(text):
    with pytest.raises(KeyError, match=r"conv1d, conv2d.*only after convolutions.*relu, relu6"):
        parse_key(text)


@pytest.mark.parametrize("text", SOME)
def test_a_pattern_graph_computes_the_pattern(text):
    key = parse_key(text)
    module, inputs = pattern_model(key)
    operands = [inputs[0].clone(), *inputs[1:]]
    if CORES[key.core].rule is Rule.WEIGHTED:
        operands += [module.weight, module.bias]
    if key.batch_norm:
        norm = module.train().norm
        operands += [norm.weight, norm.bias, norm.running_mean.clone(), norm.running_var.clone()]
    result, names = pattern_graph(text)(*operands)
    torch.testing.assert_close(result, module(*inputs))
    assert names["mod" if "weight" in names else "binary_op"] is not None


def test_pattern_graphs_can_be_used_up():
    """A matcher takes the names out of the graph it is given, so each call has to give another one."""
    for _ in range(2):
        graph = pattern_graph("conv2d+relu")
        matcher = SubgraphMatcherWithNameNodeMap(graph, ignore_literals=True)
        assert set(matcher.name_node_map) == {"input", "mod", "weight", "bias", "output"}


@pytest.mark.parametrize("text", ["conv2d+relu", "linear+sigmoid", "add+hardtanh_", "mul", "matmul+tanh"])
def test_torchs_own_matcher_finds_the_pattern_in_its_model(capture, text):
    module, inputs = pattern_model(parse_key(text))
    captured = capture(module, *inputs)
    captured.graph.eliminate_dead_code()
    (match,) = SubgraphMatcherWithNameNodeMap(pattern_graph(text), ignore_literals=True).match(captured.graph)
    anchor = match.name_node_map.get("output") or match.name_node_map["binary_op"]
    assert anchor.target == PATTERNS[parse_key(text)].chain[0].target
