"""Whether the pattern table still is what the installed executorch and torch export: 405 exports, about a minute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from opsuite.quantizer.oracle import peer_quantizer
from opsuite.quantizer.patterns import PATTERNS, Key, pattern_graph


@dataclass(frozen=True)
class Drift:
    """One thing in which the table and the exported graphs differ; `pattern` is a key, or the place in the order."""

    pattern: str
    problem: str

    def __str__(self) -> str:
        return f"{self.pattern}: {self.problem}"


@dataclass(frozen=True)
class PatternReport:
    """What `check_patterns` found: how many graphs were exported, and no drift if the table holds."""

    exported: int
    drifts: tuple[Drift, ...]

    @property
    def holds(self) -> bool:
        return self.exported > 0 and not self.drifts

    def __str__(self) -> str:
        head = f"{self.exported} exported graphs, {len(PATTERNS)} patterns in the table"
        if self.holds:
            return f"{head}: equal, in the same order"
        return "\n".join((f"{head}: {len(self.drifts) or 'no exports, so'} drifted", *map(str, self.drifts)))


@dataclass(frozen=True)
class Shape:
    """A pattern graph without its names: each node's op, target and arguments, then the results and the name map.

    References to nodes are their places in the graph.
    """

    nodes: tuple[tuple[str, str, Any], ...]
    result: Any
    names: tuple[tuple[str, Any], ...]

    @property
    def ops(self) -> tuple[str, ...]:
        return tuple(target for op, target, _ in self.nodes if op == "call_function")


def check_patterns() -> PatternReport:
    """Lets executorch's quantizer export all of its patterns and compares them with the table, graph by graph."""
    return compare_shapes(exported_shapes())


def exported_shapes() -> list[Shape]:
    """The graphs that executorch's quantizer exports for a model, in the order in which it tries them."""
    import coremltools as ct
    import executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils as utils

    build = utils._get_aten_graph_module
    found: list[Shape] = []

    def recorded(*args: Any, **kwargs: Any) -> GraphModule:
        exported = build(*args, **kwargs)
        # Described here, because a matcher takes the name map out of the graph.
        found.append(shape_of(exported))
        return exported

    graph = Graph()
    graph.output((graph.placeholder("x"),))
    config = ct.optimize.torch.quantization.LinearQuantizerConfig()
    with mock.patch.object(utils, "_get_aten_graph_module", recorded):
        peer_quantizer(config).annotate(GraphModule(torch.nn.Module(), graph))
    return found


def shape_of(module: GraphModule) -> Shape:
    """The shape of a pattern graph that returns `(result, {name: node})`."""
    nodes = [node for node in module.graph.nodes if node.op != "output"]
    place = {node: f"%{index}" for index, node in enumerate(nodes)}

    def placed(value: Any) -> Any:
        return pytree.tree_map(lambda leaf: place[leaf] if isinstance(leaf, Node) else leaf, value)

    described = tuple(
        (node.op, "" if node.op == "placeholder" else str(node.target), (placed(node.args), placed(dict(node.kwargs))))
        for node in nodes
    )
    output = next(node for node in module.graph.nodes if node.op == "output")
    out_spec: Any = module.graph._codegen.pytree_info.out_spec
    result, names = pytree.tree_unflatten(list(output.args[0]), out_spec)
    return Shape(described, placed(result), tuple(sorted((name, placed(node)) for name, node in names.items())))


def compare_shapes(exported: list[Shape]) -> PatternReport:
    """Compares exported graphs, in their order, with the table's."""
    table = {key: shape_of(pattern_graph(key)) for key in PATTERNS}
    by_ops = {shape.ops: key for key, shape in table.items()}
    drifts: list[Drift] = []
    order: dict[Key, None] = {}
    for place, shape in enumerate(exported, start=1):
        key = by_ops.get(shape.ops)
        if key is None:
            drifts.append(Drift(f"export {place}", f"the table has no pattern of {' -> '.join(shape.ops)}"))
            continue
        order.setdefault(key)
        for aspect in ("nodes", "result", "names"):
            ours, theirs = getattr(table[key], aspect), getattr(shape, aspect)
            if ours != theirs:
                drifts.append(Drift(str(key), f"{aspect} are {theirs} as exported, {ours} in the table"))
    drifts += [Drift(str(key), "is in the table and not exported") for key in PATTERNS if key not in order]
    expected = [key for key in PATTERNS if key in order]
    for place, (ours_key, their_key) in enumerate(zip(expected, order, strict=True), start=1):
        if ours_key != their_key:
            drifts.append(Drift(f"place {place}", f"executorch tries {their_key} there, the table {ours_key}"))
            break
    return PatternReport(len(exported), tuple(drifts))
