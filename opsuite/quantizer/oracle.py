"""The installed ExecuTorch's quantizer as an oracle, fast enough to ask thousands of times.

ExecuTorch exports its 405 pattern graphs for every model; here they are kept for the life of the process, and every one
of them is still tried. What is skipped repeats work whose result is known: a graph that was just cleaned is not cleaned
again while only annotations are added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.fx import Graph, GraphModule
from torch.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

from opsuite.accelerate.pattern_cache import pattern_key

_pattern_graphs: dict[Any, GraphModule] = {}
_matchers: dict[tuple[int, bool], SubgraphMatcherWithNameNodeMap] = {}


def peer_quantizer(config: Any) -> Any:
    """ExecuTorch's `CoreMLQuantizer` for `config`, to be used under `cached_peer()`."""
    from executorch.backends.apple.coreml.quantizer import CoreMLQuantizer

    return CoreMLQuantizer(config)


@contextmanager
def cached_peer() -> Iterator[None]:
    """While this context is open, ExecuTorch's quantizer exports each of its patterns once, in about a minute."""
    import executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils as utils

    with (
        mock.patch.object(utils, "_get_aten_graph_module", _kept(utils._get_aten_graph_module, _pattern_graphs)),
        mock.patch.object(utils, "_SubgraphMatcherWithNameNodeMap", _kept_matcher),
        mock.patch.object(utils, "_get_source_partitions", _in_graph_order(utils._get_source_partitions)),
    ):
        yield


@contextmanager
def cleaned_once(model: GraphModule) -> Iterator[None]:
    """Lets the first clean-up and recompilation of `model` happen and makes the repetitions do nothing."""
    clean, recompile = Graph.eliminate_dead_code, GraphModule.recompile
    done: set[str] = set()

    def first(name: str, method: Callable[..., Any], owner: Any) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self is owner and name in done:
                return None
            if self is owner:
                done.add(name)
            return method(self, *args, **kwargs)

        return call

    with (
        mock.patch.object(Graph, "eliminate_dead_code", first("clean", clean, model.graph)),
        mock.patch.object(GraphModule, "recompile", first("recompile", recompile, model)),
    ):
        yield


def _kept(build: Callable[..., GraphModule], store: dict[Any, GraphModule]) -> Callable[..., GraphModule]:
    def get(pattern: torch.nn.Module, example_inputs: Any, is_cuda: bool = False) -> GraphModule:
        key = pattern_key(pattern, example_inputs, (), {})
        if key not in store:
            store[key] = build(pattern, example_inputs, is_cuda)
        return store[key]

    return get


def _kept_matcher(pattern: GraphModule, ignore_literals: bool = False) -> SubgraphMatcherWithNameNodeMap:
    # Making a matcher takes the name map out of the pattern graph, so the matcher is what can be used again.
    key = (id(pattern), ignore_literals)
    if key not in _matchers:
        _matchers[key] = SubgraphMatcherWithNameNodeMap(pattern, ignore_literals=ignore_literals)
    return _matchers[key]


def _in_graph_order(find: Callable[..., Any]) -> Callable[..., Any]:
    """Of an op with several results torch gives the used ones in the order of a set of addresses, and ExecuTorch takes
    the first: another one from run to run. In graph order it is the first result that is used."""

    def ordered(graph: Graph, *args: Any, **kwargs: Any) -> Any:
        found = find(graph, *args, **kwargs)
        position = {node: place for place, node in enumerate(graph.nodes)}
        for partitions in found.values():
            for partition in partitions:
                partition.output_nodes.sort(key=position.__getitem__)
        return found

    return ordered
