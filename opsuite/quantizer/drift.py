"""Whether the tables still are what the installed executorch and torch have: 405 exports, about a minute."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from opsuite.quantizer.oracle import peer_quantizer
from opsuite.quantizer.patterns import FAMILIES, PATTERNS, Key, Rule, pattern_graph


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

    def to_json(self) -> dict[str, Any]:
        return {
            "exported": self.exported,
            "patterns": len(PATTERNS),
            "holds": self.holds,
            "drifts": [vars(drift) for drift in self.drifts],
        }

    def __str__(self) -> str:
        head = f"{self.exported} exported graphs, {len(PATTERNS)} patterns in the table"
        if self.holds:
            return f"{head}: equal, in the same order"
        return "\n".join((f"{head}: {len(self.drifts) or 'no exports, so'} drifted", *map(str, self.drifts)))


@dataclass(frozen=True)
class Observed:
    """What executorch's quantizer tries on a model, in its order.

    Attributes:
        shapes: its pattern graphs.
        sources: for each step of the shared-qparams rule, the functions and module types that it looks for.
    """

    shapes: tuple[Shape, ...]
    sources: tuple[frozenset[Any], ...]


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
    return compare_with_table(observe_peer())


def observe_peer() -> Observed:
    """What executorch's quantizer tries, recorded while it annotates a model that holds nothing."""
    import coremltools as ct
    import executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils as utils

    build, share = utils._get_aten_graph_module, utils.annotate_unary_shared_observer_ops
    shapes: list[Shape] = []
    sources: list[frozenset[Any]] = []

    def recorded_build(*args: Any, **kwargs: Any) -> GraphModule:
        exported = build(*args, **kwargs)
        # Described here, because a matcher takes the name map out of the graph.
        shapes.append(shape_of(exported))
        return exported

    def recorded_share(model: GraphModule, ops: list[Any], *args: Any, **kwargs: Any) -> Any:
        sources.append(frozenset(ops))
        return share(model, ops, *args, **kwargs)

    graph = Graph()
    graph.output((graph.placeholder("x"),))
    config = ct.optimize.torch.quantization.LinearQuantizerConfig()
    with (
        mock.patch.object(utils, "_get_aten_graph_module", recorded_build),
        mock.patch.object(utils, "annotate_unary_shared_observer_ops", recorded_share),
    ):
        peer_quantizer(config).annotate(GraphModule(torch.nn.Module(), graph))
    return Observed(tuple(shapes), tuple(sources))


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


def compare_with_table(observed: Observed) -> PatternReport:
    """Compares what executorch tries, in its order, with the tables."""
    drifts = [*_graph_drifts(observed.shapes), *_order_drifts(observed.shapes), *_source_drifts(observed.sources)]
    return PatternReport(len(observed.shapes), tuple(drifts))


def _graph_drifts(exported: Iterable[Shape]) -> Iterator[Drift]:
    by_ops = _keys_by_ops()
    seen: set[Key] = set()
    for place, shape in enumerate(exported, start=1):
        key = by_ops.get(shape.ops)
        if key is None:
            yield Drift(f"export {place}", f"the table has no pattern of {' -> '.join(shape.ops)}")
            continue
        seen.add(key)
        for aspect in ("nodes", "result", "names"):
            ours, theirs = getattr(_table()[key], aspect), getattr(shape, aspect)
            if ours != theirs:
                yield Drift(str(key), f"{aspect} are {theirs} as exported, {ours} in the table")
    yield from (Drift(str(key), "is in the table and not exported") for key in PATTERNS if key not in seen)


def _order_drifts(exported: Iterable[Shape]) -> Iterator[Drift]:
    """The first place at which the orders part, if any: all places behind it would differ too."""
    by_ops = _keys_by_ops()
    theirs = dict.fromkeys(by_ops[shape.ops] for shape in exported if shape.ops in by_ops)
    ours = [key for key in PATTERNS if key in theirs]
    for place, (our_key, their_key) in enumerate(zip(ours, theirs, strict=True), start=1):
        if our_key != their_key:
            yield Drift(f"place {place}", f"executorch tries {their_key} there, the table {our_key}")
            return


def _source_drifts(sources: tuple[frozenset[Any], ...]) -> Iterator[Drift]:
    families = [family for family in FAMILIES if family.rule is Rule.SHARED]
    if len(families) != len(sources):
        yield Drift("shared qparams", f"executorch has {len(sources)} steps, the table {len(families)}")
        return
    for family, theirs in zip(families, sources, strict=True):
        ours = frozenset(family.sources)
        if ours != theirs:
            yield Drift(family.name, f"executorch looks for {_names(theirs)}, the table has {_names(ours)}")


@functools.cache
def _table() -> dict[Key, Shape]:
    return {key: shape_of(pattern_graph(key)) for key in PATTERNS}


def _keys_by_ops() -> dict[tuple[str, ...], Key]:
    return {shape.ops: key for key, shape in _table().items()}


def _names(sources: frozenset[Any]) -> str:
    return ", ".join(sorted(getattr(source, "__name__", str(source)) for source in sources))
