"""Why each op of a model is quantized, or is not: the quantizer's decisions as rows and as a table."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console, RenderableType
from rich.table import Table
from torch.fx import Graph, GraphModule, Node
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from opsuite.quantizer.annotate import Annotated, Skipped, is_annotated, is_floating_point, is_shared_weight
from opsuite.quantizer.fixes import Fix
from opsuite.quantizer.matcher import Reason, Rejection

if TYPE_CHECKING:
    from opsuite.quantizer.quantizer import CoreMLQuantizer, Decision, Decisions

QUANTIZED, FLOAT = "quantized", "float"

NO_PATTERN = "no pattern"
"""The reason of an op that none of the patterns has."""

CONFIGURED_AS_FLOAT = "configured as float"
"""The reason of an op whose configuration quantizes nothing."""

CLAIMED = "claimed"
"""The reason of an op that computes the weight or bias of a quantized layer."""


@dataclass(frozen=True)
class Row:
    """What became of one op.

    Attributes:
        node: name of the node in the captured graph.
        op: the op, such as `aten.conv2d.default`.
        module: path of the module that the op comes from, empty if unknown.
        verdict: "quantized" or "float".
        pattern: the pattern that was applied, or that came nearest.
        scope: the configuration that was applied: "global", "module name ..." or "module type ...".
        reason: why it is not quantized, in a word or two; empty if it is.
        detail: the reason in a sentence, or what stands out.
        fix: the option of `CoreMLQuantizer(config, fixes=...)` that would change this, if one would.
    """

    node: str
    op: str
    module: str
    verdict: str
    pattern: str = ""
    scope: str = ""
    reason: str = ""
    detail: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Explanation:
    """One row for each op of the model, in graph order. Printing it, also with rich, shows a table."""

    rows: tuple[Row, ...]

    @property
    def quantized(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict == QUANTIZED)

    @property
    def left_float(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict == FLOAT)

    def __getitem__(self, node: str) -> Row:
        """The row of the node with that name.

        Raises:
            KeyError: there is none; the message lists those that there are.
        """
        for row in self.rows:
            if row.node == node:
                return row
        raise KeyError(f"no op {node!r}; ops are {', '.join(row.node for row in self.rows)}")

    def __rich__(self) -> RenderableType:
        title = f"{len(self.quantized)} of {len(self.rows)} ops quantized"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for column in ("node", "module", "verdict", "pattern", "scope"):
            table.add_column(column, overflow="fold")
        table.add_column("why", overflow="fold", ratio=1)
        for row in self.rows:
            style = "green" if row.verdict == QUANTIZED else "yellow"
            why = ": ".join(part for part in (row.reason, row.detail) if part)
            if row.fix:
                why += f" (fix: {row.fix})"
            table.add_row(row.node, row.module, f"[{style}]{row.verdict}", row.pattern, row.scope, why)
        return table

    def __str__(self) -> str:
        console = Console(width=160, no_color=True, force_terminal=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())


def explain(
    quantizer: CoreMLQuantizer, model: Any, inputs: tuple[Any, ...] | None = None, *, qat: bool = False
) -> Explanation:
    """See `CoreMLQuantizer.explain`."""
    captured = _captured(model, inputs, qat)
    if not qat:
        _fold_batch_norms(captured)
    quantizer.annotate(captured)
    assert quantizer.decisions is not None
    return Explanation(tuple(_rows(captured.graph, quantizer.decisions)))


def _captured(model: Any, inputs: tuple[Any, ...] | None, qat: bool) -> GraphModule:
    if inputs is None:
        if not isinstance(model, GraphModule):
            raise TypeError(
                f"explain() takes a captured model, or a module with its example inputs: got a {type(model).__name__} "
                "without inputs"
            )
        return copy.deepcopy(model)
    modes = [(module, module.training) for module in model.modules()]
    try:
        return torch.export.export(model.train(qat), inputs, strict=True).module()
    finally:
        for module, training in modes:
            module.training = training


def _fold_batch_norms(captured: GraphModule) -> None:
    """What `prepare_pt2e` does before it asks the quantizer."""
    from torchao.quantization.pt2e.utils import _fuse_conv_bn_

    _fuse_conv_bn_(captured)


def _rows(graph: Graph, decisions: Decisions) -> Iterator[Row]:
    applied: dict[Node, Decision] = {}
    refused: dict[Node, Decision] = {}
    for decision in decisions.decisions:
        for node in decision.nodes:
            if isinstance(decision.outcome, Annotated):
                applied.setdefault(node, decision)
            elif node not in refused or _reason(refused[node]) is Reason.FILTERED:
                # The first refusal is that of the longest pattern, and so the nearest miss. That a configuration is for
                # other modules says less than what the one that is for this module came to.
                refused[node] = decision
    near: dict[Node, Rejection] = {}
    for rejection in decisions.findings.rejections:
        for node in rejection.nodes:
            near.setdefault(node, rejection)
    for node in graph.nodes:
        if node.op == "call_function":
            yield _row(node, applied.get(node), refused.get(node), near.get(node))


def _row(node: Node, applied: Decision | None, refused: Decision | None, near: Rejection | None) -> Row:
    about = {"node": node.name, "op": str(node.target), "module": _module(node)}
    if applied is not None:
        return _applied_row(about, applied)
    if near is not None and (refused is None or near.nodes[0] is node):
        fix = Fix.SAME_OPERAND.value if near.reason is Reason.REPEATED_OPERAND else ""
        pattern = str(near.pattern.key)
        return Row(**about, verdict=FLOAT, pattern=pattern, reason=near.reason.value, detail=near.detail, fix=fix)
    if refused is not None:
        assert isinstance(refused.outcome, Skipped)
        return Row(
            **about,
            verdict=FLOAT,
            pattern=refused.pattern,
            scope=refused.scope,
            reason=refused.outcome.reason.value,
            detail=refused.outcome.detail,
            fix=_fix(node, refused.outcome.reason),
        )
    if is_annotated(node):
        return Row(**about, verdict=FLOAT, reason=CLAIMED, detail="it computes a weight or bias")
    return Row(**about, verdict=FLOAT, reason=NO_PATTERN, detail="Core ML's static int8 patterns do not have this op")


def _applied_row(about: dict[str, str], applied: Decision) -> Row:
    assert isinstance(applied.outcome, Annotated)
    about = {**about, "pattern": applied.pattern, "scope": applied.scope}
    if not _has_spec(applied.nodes):
        detail = f"the {applied.scope} configuration quantizes neither weights nor activations here"
        return Row(**about, verdict=FLOAT, reason=CONFIGURED_AS_FLOAT, detail=detail)
    observed = [node for node in _observed(applied.nodes) if not is_floating_point(node)]
    if observed:
        detail = f"calibration will fail: {', '.join(node.name for node in observed)} is not floating point"
        return Row(**about, verdict=QUANTIZED, detail=detail, fix=Fix.INTEGER_TENSORS.value)
    return Row(**about, verdict=QUANTIZED, detail=applied.outcome.note)


def _observed(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """The tensors at which annotations of `nodes` ask for an observer."""
    for node in nodes:
        annotation = node.meta.get(Q_ANNOTATION_KEY)
        if annotation is not None:
            yield from (value for value, spec in annotation.input_qspec_map.items() if spec is not None)
            if annotation.output_qspec is not None:
                yield node


def _fix(node: Node, reason: Reason) -> str:
    """The fix without which `node` was refused, if there is one."""
    if reason is Reason.ORIGIN_UNKNOWN:
        return Fix.MODULE_CONFIGS.value
    return Fix.SHARED_WEIGHTS.value if _lost_its_weight(node) else ""


def _lost_its_weight(node: Node) -> bool:
    """Whether a layer is float because another one has claimed its weight."""
    weight = node.args[1] if len(node.args) > 1 else None
    return isinstance(weight, Node) and is_shared_weight(weight) and not is_annotated(node)


def _reason(decision: Decision) -> Reason | None:
    return decision.outcome.reason if isinstance(decision.outcome, Skipped) else None


def _has_spec(nodes: tuple[Node, ...]) -> bool:
    """Whether an annotation of `nodes` quantizes anything."""
    return any(True for _ in _observed(nodes))


def _module(node: Node) -> str:
    stack = list(node.meta.get("nn_module_stack", {}).values())
    return stack[-1][0].removeprefix("L['self'].").removeprefix("L['self']") if stack else ""
