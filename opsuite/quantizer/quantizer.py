"""The Core ML static-int8 quantizer for PT2E, composed of the pattern table, the matcher and the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.utils.source_matcher_utils import SourcePartition, get_source_partitions
from torchao.quantization.pt2e.quantizer import Quantizer
from torchao.quantization.pt2e.quantizer.utils import get_module_name_filter

from opsuite.quantizer.annotate import NodeFilter, Outcome, annotate_match, annotate_shared
from opsuite.quantizer.checks import check_config, check_precision
from opsuite.quantizer.fixes import Fix, parse_fixes
from opsuite.quantizer.matcher import Findings, Match, find_matches
from opsuite.quantizer.patterns import FAMILIES, Family, Rule, family_keys
from opsuite.quantizer.specs import Specs, specs_from_config


@dataclass(frozen=True)
class Scope:
    """One configuration with the nodes that it applies to; `label` names it to people."""

    label: str
    config: Any
    accepts: NodeFilter


@dataclass(frozen=True)
class Decision:
    """What became of one match, or one pool or flatten, under one configuration."""

    scope: str
    family: str
    pattern: str
    nodes: tuple[Node, ...]
    outcome: Outcome


@dataclass(frozen=True)
class Decisions:
    """All that one `annotate` call decided, in order, with the near-misses of the matcher."""

    decisions: tuple[Decision, ...]
    findings: Findings


class CoreMLQuantizer(Quantizer):
    """Annotates a captured model for static int8 on Core ML; for `prepare_pt2e` and `prepare_qat_pt2e`.

    A drop-in for ExecuTorch's quantizer of that name: the annotations are the same, and take milliseconds.

    Arguments:
        config: coremltools' `LinearQuantizerConfig`. Of each of its parts the observer types, the scheme, the dtypes
            and `weight_per_channel` count. float32 activations give weight-only quantization.
        fixes: departures from ExecuTorch's annotations, by name (see `opsuite.quantizer.fixes.Fix`), or "all".
    """

    def __init__(self, config: Any, *, fixes: Iterable[Fix | str] | str = ()) -> None:
        self._config = config
        self._fixes = parse_fixes(fixes)
        self._last: Decisions | None = None

    @property
    def fixes(self) -> frozenset[Fix]:
        """The departures from ExecuTorch's annotations that this quantizer makes."""
        return self._fixes

    @property
    def decisions(self) -> Decisions | None:
        """What the last `annotate` decided, or None before the first. It refers to nodes of that call's model."""
        return self._last

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotates `model` in place and returns it. Dead code is removed; nothing is exported.

        Raises:
            ValueError: an observer type that is not supported, or what a fix refuses.
        """
        scopes = list(_scopes(self._config, inside=Fix.MODULE_CONFIGS in self._fixes))
        if Fix.UNSUPPORTED_CONFIG in self._fixes:
            for scope in scopes:
                check_config(scope.config, scope.label)
        model.graph.eliminate_dead_code()
        model.recompile()
        if Fix.HALF_PRECISION in self._fixes:
            check_precision(model.graph)
        findings = find_matches(model.graph, repeated_operands=Fix.SAME_OPERAND in self._fixes)
        steps = _Steps(findings, model.graph)
        decisions: list[Decision] = []
        for scope in scopes:
            specs = specs_from_config(scope.config)
            for family in FAMILIES:
                decisions.extend(self._run(family, steps, scope, specs))
        self._last = Decisions(tuple(decisions), findings)
        return model

    def validate(self, model: GraphModule) -> None:
        """Accepts every annotated model: what Core ML cannot run is decided when the model is lowered."""

    def explain(self, model: Any, inputs: tuple[Any, ...] | None = None, *, qat: bool = False) -> Any:
        """What would be quantized in `model`, by which pattern, and why not the rest. `model` is left as it is.

        Arguments:
            model: a captured graph module, or a module together with example `inputs` to capture it with.
            inputs: the module's positional arguments.
            qat: explain `prepare_qat_pt2e` rather than `prepare_pt2e`, which first folds batch norms into layers.

        Returns:
            `opsuite.quantizer.explain.Explanation`: rows, printed as a table.

        Raises:
            TypeError: a module without inputs.
        """
        from opsuite.quantizer.explain import explain

        return explain(self, model, inputs, qat=qat)

    def _run(self, family: Family, steps: _Steps, scope: Scope, specs: Specs) -> Iterator[Decision]:
        if family.rule is Rule.SHARED:
            for partition in steps.partitions(family, scope.accepts):
                outcome = annotate_shared(partition, specs)
                yield Decision(scope.label, family.name, family.name, tuple(partition.nodes), outcome)
            return
        for match in steps.matches.get(family.name, ()):
            outcome = annotate_match(match, specs, scope.accepts, self._fixes)
            yield Decision(scope.label, family.name, str(match.pattern.key), match.nodes, outcome)


class _Steps:
    """The work of each family in one graph, found once and used for every configuration."""

    def __init__(self, findings: Findings, graph: torch.fx.Graph) -> None:
        self.matches: dict[str, list[Match]] = {}
        for match in findings.matches:
            self.matches.setdefault(_FAMILY_OF[match.pattern.key], []).append(match)
        self._partitions: dict[Any, list[SourcePartition]] = get_source_partitions(graph, list(_SOURCES))
        order = {node: position for position, node in enumerate(graph.nodes)}
        for partition in chain.from_iterable(self._partitions.values()):
            # They come from a set in no order; of an op's results the first one is its values, not its indices.
            partition.output_nodes.sort(key=order.__getitem__)

    def partitions(self, family: Family, accepts: NodeFilter) -> Iterator[SourcePartition]:
        for source, partitions in self._partitions.items():
            if source in family.sources:
                yield from (p for p in partitions if all(map(accepts, p.nodes)))


_FAMILY_OF = {key: family.name for family in FAMILIES for key in family_keys(family)}
_SOURCES: dict[Any, None] = dict.fromkeys(source for family in FAMILIES for source in family.sources)


def _scopes(config: Any, inside: bool) -> Iterator[Scope]:
    """The configurations in the order in which they apply: by module name, by type, then the global one elsewhere.

    `inside` lets a type stand for all that is inside of modules of that type.
    """
    by_name = {name: get_module_name_filter(name) for name in config.module_name_configs}
    by_type = {kind: _type_filter(kind, inside) for kind in config.module_type_configs}
    for name, part in config.module_name_configs.items():
        yield Scope(f"module name {name}", part, by_name[name])
    for kind, part in config.module_type_configs.items():
        yield Scope(f"module type {getattr(kind, '__name__', kind)}", part, by_type[kind])
    specific = [*by_type.values(), *by_name.values()]
    yield Scope("global", config.global_config, lambda node: not any(accepts(node) for accepts in specific))


def _type_filter(kind: Any, inside: bool) -> Callable[[Node], bool]:
    """Accepts nodes that come from a module of type `kind`, or from a call of the function `kind`."""
    # torch.export writes the types of the enclosing modules as text.
    wanted = {kind, f"{kind.__module__}.{kind.__qualname__}"} if inside and isinstance(kind, type) else {kind}

    def accepts(node: Node) -> bool:
        types = [entry for _, entry in node.meta.get("nn_module_stack", {}).values()]
        types.extend(entry for _, entry in node.meta.get("source_fn_stack", {}))
        return not wanted.isdisjoint(types)

    return accepts
