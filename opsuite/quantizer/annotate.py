"""The rules: what a match means for the annotations of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node
from torch.fx.passes.utils.source_matcher_utils import SourcePartition
from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, QuantizationSpecBase, SharedQuantizationSpec
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from opsuite.quantizer.fixes import Fix
from opsuite.quantizer.matcher import Match, Reason
from opsuite.quantizer.patterns import Rule
from opsuite.quantizer.specs import Specs, activation_output_spec

NodeFilter = Callable[[Node], bool]


@dataclass(frozen=True)
class Annotated:
    """The rule was applied; `note` says what stands out, such as a tensor left in float."""

    note: str = ""


@dataclass(frozen=True)
class Skipped:
    """The rule was not applied, for `reason` (`detail` in words)."""

    reason: Reason
    detail: str


Outcome = Annotated | Skipped


def is_annotated(node: Any) -> bool:
    """Whether an annotation claims `node`."""
    annotation = node.meta.get(Q_ANNOTATION_KEY)
    return annotation is not None and annotation._annotated


def annotate_match(match: Match, specs: Specs, accepts: NodeFilter, fixes: frozenset[Fix]) -> Outcome:
    """Annotates the nodes of `match` by its pattern's rule, unless the rule's conditions forbid it.

    Raises:
        ValueError: the core op has its operands as keyword arguments.
        IndexError: see `activation_output_spec`.
    """
    rule = _annotate_weighted if match.pattern.rule is Rule.WEIGHTED else _annotate_binary
    return rule(match, specs, accepts, fixes)


def _annotate_weighted(match: Match, specs: Specs, accepts: NodeFilter, fixes: frozenset[Fix]) -> Outcome:
    core, output = match.core, match.anchor if len(match.nodes) > 1 else None
    input_, weight, bias = (match.operands[name] for name in ("input", "weight", "bias"))
    _require_positional(core, 2)
    partition = [core, weight] if bias is None else [core, weight, bias]
    claimed = [core] if Fix.SHARED_WEIGHTS in fixes and is_shared_weight(weight) else partition
    scoped = [core] if Fix.MODULE_CONFIGS in fixes else partition
    refusal = _refusal(scoped, claimed, accepts) or _dtype_refusal(match, (input_, weight), fixes)
    if refusal is not None:
        return refusal
    input_spec = input_.meta[Q_ANNOTATION_KEY].output_qspec if is_annotated(input_) else specs.activation
    input_specs: dict[Node, QuantizationSpecBase | None] = {input_: input_spec, weight: specs.weight}
    if bias is not None:
        input_specs[bias] = None
    _set_annotations(core, output, input_specs, specs)
    _claim(partition)
    return Annotated()


def _annotate_binary(match: Match, specs: Specs, accepts: NodeFilter, fixes: frozenset[Fix]) -> Outcome:
    core, output = match.core, match.anchor if len(match.nodes) > 1 else None
    partition = list(match.nodes)
    refusal = _refusal(partition, partition, accepts) or _dtype_refusal(match, (), fixes)
    if refusal is not None:
        return refusal
    _require_positional(core, 2)
    operands = [argument for argument in core.args[:2] if isinstance(argument, Node)]
    left_float = [node for node in operands if Fix.INTEGER_TENSORS in fixes and not is_floating_point(node)]
    input_specs: dict[Node, QuantizationSpecBase | None] = {
        node: specs.activation for node in operands if node not in left_float
    }
    _set_annotations(core, output, input_specs, specs)
    _claim(partition)
    return Annotated(f"{', '.join(n.name for n in left_float)} not observed: not floating point" if left_float else "")


def annotate_shared(partition: SourcePartition, specs: Specs) -> Outcome:
    """Gives an op that keeps its input's values (a pool, a flatten) the qparams of that input.

    Raises:
        IndexError, AttributeError: no node of the partition is used outside of it, or its first argument is no node.
    """
    output, first = partition.output_nodes[0], partition.nodes[0]
    for node in (output, first):
        if is_annotated(node):
            return Skipped(Reason.ALREADY_ANNOTATED, f"{node.name} is annotated already")
    input_: Any = first.args[0]
    annotation = input_.meta.get(Q_ANNOTATION_KEY)
    if annotation is None or not annotation._annotated or annotation.output_qspec is None:
        return Skipped(Reason.INPUT_NOT_QUANTIZED, f"its input {input_.name} has no quantized output to share")
    if specs.activation is None:
        return Skipped(Reason.NO_ACTIVATION_SPEC, "the configuration leaves activations in float")
    shared = SharedQuantizationSpec(input_)
    first.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(input_qspec_map={input_: shared}, _annotated=True)
    # For a single node this replaces the annotation of the line above: its input then has no spec of its own.
    output.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(output_qspec=shared, _annotated=True)
    return Annotated(f"shares the qparams of {input_.name}")


def is_floating_point(node: Node) -> bool:
    """Whether the value of `node` is a floating-point tensor; a value of unknown dtype counts as one."""
    value = node.meta.get("val")
    return not isinstance(value, torch.Tensor) or value.is_floating_point()


def _refusal(scoped: Iterable[Node], claimed: Iterable[Node], accepts: NodeFilter) -> Skipped | None:
    for node in claimed:
        if is_annotated(node):
            return Skipped(Reason.ALREADY_ANNOTATED, f"{node.name} is annotated already")
    for node in scoped:
        if not accepts(node):
            if node.op == "get_attr":
                # The op itself, which comes first, was accepted.
                return Skipped(Reason.ORIGIN_UNKNOWN, f"{node.name} does not tell what module it is from")
            return Skipped(Reason.FILTERED, f"another configuration applies to {node.name}")
    return None


def _dtype_refusal(match: Match, required: Iterable[Node], fixes: frozenset[Fix]) -> Skipped | None:
    if Fix.INTEGER_TENSORS not in fixes:
        return None
    for node in (*match.nodes, *required):
        if not is_floating_point(node):
            return Skipped(Reason.DTYPE, f"{node.name} is {str(node.meta['val'].dtype).removeprefix('torch.')}")
    return None


def is_shared_weight(weight: Node) -> bool:
    """Whether `weight` was claimed as a weight, and so can be quantized alike for one more layer."""
    return is_annotated(weight) and weight.op == "get_attr" and weight.meta[Q_ANNOTATION_KEY].output_qspec is None


def _require_positional(core: Node, count: int) -> None:
    if len(core.args) < count:
        raise ValueError(f"{core.name}: operands of {core.target} must be positional arguments, not {core.kwargs}")


def _set_annotations(
    core: Node, output: Node | None, input_specs: dict[Node, QuantizationSpecBase | None], specs: Specs
) -> None:
    if output is None:
        core.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(
            input_qspec_map=input_specs, output_qspec=specs.activation, _annotated=True
        )
        return
    core.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(input_qspec_map=input_specs, _annotated=True)
    if not is_annotated(output):
        output.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(
            output_qspec=activation_output_spec(output, specs.activation), _annotated=True
        )


def _claim(nodes: Iterable[Node]) -> None:
    for node in nodes:
        node.meta.setdefault(Q_ANNOTATION_KEY, QuantizationAnnotation())._annotated = True
