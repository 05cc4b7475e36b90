import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

from opsuite.accelerate.pattern_cache import PatternCache


def pattern(activation, scale=1.0):
    class Pattern(torch.nn.Module):
        def forward(self, x):
            y = activation(x * scale)
            return y, {"x": x, "y": y}

    return Pattern()


def export(module, inputs, *args):
    return torch.export.export(module, inputs, strict=True).module()


INPUTS = (torch.ones(2),)


def test_equal_arguments_are_built_once_and_copied():
    cache = PatternCache()
    graphs = [cache.get(export, pattern(F.relu), INPUTS) for _ in range(3)]
    assert cache.builds == 1
    assert len({id(graph) for graph in graphs}) == 3
    # A matcher strips the graph it is given; only a fresh copy serves another one.
    for graph in graphs:
        assert SubgraphMatcherWithNameNodeMap(graph).match(export(pattern(F.relu), INPUTS).graph) is not None


@pytest.mark.parametrize(
    "other",
    [
        lambda: (pattern(F.sigmoid), INPUTS),
        lambda: (pattern(F.relu, 2.0), INPUTS),
        lambda: (pattern(F.relu, 1), INPUTS),
        lambda: (pattern(F.relu), (torch.ones(3),)),
        lambda: (pattern(F.relu), (torch.ones(2, dtype=torch.float64),)),
    ],
    ids=["function", "number", "type of number", "shape", "dtype"],
)
def test_other_arguments_are_built_anew(other):
    cache = PatternCache()
    cache.get(lambda *_: torch.nn.Identity(), pattern(F.relu), INPUTS)
    cache.get(lambda *_: torch.nn.Identity(), *other())
    assert cache.builds == 2


def test_grad_mode_is_an_argument():
    cache = PatternCache()
    cache.get(lambda *_: torch.nn.Identity(), pattern(F.relu), INPUTS)
    with torch.no_grad():
        cache.get(lambda *_: torch.nn.Identity(), pattern(F.relu), INPUTS)
    assert cache.builds == 2


@pytest.mark.parametrize("unknown", [object(), torch.nn.Linear(1, 1)], ids=["object", "module"])
def test_a_closure_over_something_unknown_is_never_kept(unknown):
    cache = PatternCache()
    calls = []
    for _ in range(2):
        cache.get(lambda *_: calls.append(1), pattern(F.relu, unknown), INPUTS)
    assert len(calls) == 2
    assert len(cache) == 0


def test_threads_share_one_build_and_no_graph():
    cache = PatternCache()
    with ThreadPoolExecutor(8) as pool:
        graphs = list(pool.map(lambda _: cache.get(export, pattern(F.relu), INPUTS), range(16)))
    assert cache.builds == 1
    assert len({id(graph) for graph in graphs}) == 16
    assert len({id(node) for graph in graphs for node in graph.graph.nodes}) == sum(
        len(list(graph.graph.nodes)) for graph in graphs
    )
    assert {graph.code for graph in graphs} == {copy.deepcopy(graphs[0]).code}
