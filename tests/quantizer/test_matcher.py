import pytest
import torch
import torch.nn.functional as F
from torch.fx import Graph

from opsuite.quantizer.matcher import Reason, find_matches
from opsuite.quantizer.patterns import PATTERNS, Key, pattern_graph

aten = torch.ops.aten


@pytest.fixture
def find(capture):
    """Finds patterns in what a function is captured as: `{key: node name of the anchor}`, and the near-misses."""

    def find(function, *inputs, **options):
        found = find_matches(capture(function, *inputs).graph, **options)
        return {str(match.pattern.key): match.anchor.name for match in found.matches}, [
            (str(rejection.pattern.key), rejection.reason) for rejection in found.rejections
        ]

    return find


X, Y = torch.randn(2, 4), torch.randn(2, 4)
IMAGE, KERNEL = torch.randn(1, 2, 5, 5), torch.randn(2, 2, 3, 3)


@pytest.mark.parametrize("key", PATTERNS, ids=str)
def test_each_pattern_is_found_in_its_own_graph(key):
    graph = pattern_graph(key).graph
    output = next(node for node in graph.nodes if node.op == "output")
    result = output.args[0][0]
    output.args = ((result,),)
    graph.eliminate_dead_code()
    found = find_matches(graph)
    match = found.matches[0]
    assert (match.pattern.key, match.anchor) == (key, result)
    assert [node.name for node in match.nodes if node.op != "call_function"] == []
    # What ends further up is used by the rest of the chain, so it is found as well, later.
    assert all(other.pattern.rank > match.pattern.rank for other in found.matches[1:])


def test_matches_come_pattern_by_pattern_then_in_graph_order(capture):
    captured = capture(lambda x, y: F.sigmoid(x + y) + F.relu(x * y) + (x + y), X, Y)
    found = [(str(match.pattern.key), match.anchor.name) for match in find_matches(captured.graph).matches]
    assert found == [
        ("add+sigmoid", "sigmoid"),
        ("add", "add"),
        ("add", "add_1"),
        ("add", "add_2"),
        ("add", "add_3"),
        ("mul+relu", "relu"),
        ("mul", "mul"),
    ]


def test_an_op_used_outside_of_the_chain_ends_it(find):
    def function(x, y):
        sum_ = x + y
        return F.relu(sum_) * sum_

    matches, rejections = find(function, X, Y)
    assert matches == {"add": "add", "mul": "mul"}
    assert rejections == [("add+relu", Reason.SEVERAL_USERS)]


@pytest.mark.parametrize("repeated", [False, True])
def test_an_operand_given_twice_matches_on_request(find, repeated):
    matches, rejections = find(lambda x: F.relu(x + x), X, repeated_operands=repeated)
    assert matches == ({"add+relu": "relu", "add": "add"} if repeated else {})
    assert {reason for _, reason in rejections} == (set() if repeated else {Reason.REPEATED_OPERAND})


def test_a_bias_may_be_missing_and_literals_may_differ(find):
    assert find(lambda x, w: F.conv2d(x, w, stride=2, padding=1), IMAGE, KERNEL)[0] == {"conv2d": "conv2d"}
    assert find(lambda x, y: torch.add(x, y, alpha=3), X, Y)[0] == {"add": "add"}
    assert find(lambda x, y: F.leaky_relu(x * y, 0.3), X, Y)[0] == {"mul+leaky_relu": "leaky_relu", "mul": "mul"}
    assert find(lambda x: x * 2, X)[0] == {"mul": "mul"}


def test_a_list_of_another_length_is_another_form(find):
    matches, rejections = find(lambda x, w: aten.conv2d.default(x, w, None, [1]), IMAGE, KERNEL)
    assert matches == {}
    assert rejections == [("conv2d", Reason.ARGUMENT_FORM)]


def test_another_overload_is_another_op(find):
    assert find(lambda x, w: F.conv2d(x, w, padding="same"), IMAGE, KERNEL) == ({}, [])


def test_the_graph_is_not_changed(capture):
    graph = capture(lambda x, y: F.relu(x + y), X, Y).graph
    before = str(graph)
    find_matches(graph)
    assert str(graph) == before


def test_each_node_is_looked_at_a_bounded_number_of_times(monkeypatch):
    """A long chain of activations behind one another: the walk upwards stops at the longest pattern."""
    from opsuite.quantizer import matcher

    looked = []
    index = matcher._INDEX

    class Counting(dict):
        def get(self, key):
            looked.append(key)
            return index.get(key)

    monkeypatch.setattr(matcher, "_INDEX", Counting(index))
    graph = Graph()
    value = graph.placeholder("x")
    for _ in range(500):
        value = graph.call_function(aten.relu.default, (value,))
    graph.output((value,))
    assert find_matches(graph).matches == ()
    assert 500 <= len(looked) <= 3 * 500


def test_two_rows_with_one_chain_are_refused():
    from opsuite.quantizer.matcher import _build_index

    pattern = PATTERNS[Key("conv2d")]
    with pytest.raises(ValueError, match="conv2d and conv2d are the same chain"):
        _build_index([pattern, pattern])
