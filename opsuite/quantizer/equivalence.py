"""Shows that two quantizers do the same to a model: annotations, prepared module, converted module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torchao.quantization.pt2e.fake_quantize import disable_fake_quant
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer, SharedQuantizationSpec
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from opsuite.accelerate import accelerate
from opsuite.quantizer.oracle import cached_peer, cleaned_once, peer_quantizer
from opsuite.quantizer.quantizer import CoreMLQuantizer, Decisions


@dataclass(frozen=True)
class Difference:
    """One thing in which two results differ; `aspect` is the kind of thing and `where` the node, constant or line."""

    aspect: str
    where: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.aspect} of {self.where}:\n    ours:   {self.ours}\n    theirs: {self.theirs}"


@dataclass
class Quantized:
    """What one quantizer made of a model, as far as it came: a description of each result, and errors by stage."""

    annotations: dict[str, Any] = field(default_factory=dict)
    prepared: dict[str, Any] = field(default_factory=dict)
    converted: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)

    @property
    def annotated(self) -> int:
        """Number of nodes that an annotation claims."""
        return sum(value["annotated"] for value in self.annotations.values())


@dataclass(frozen=True)
class Comparison:
    """What two quantizers made of one model.

    Attributes:
        differences: none if they are equal.
        ours: what ours made of it.
        decisions: what ours decided, as far as it came.
    """

    differences: tuple[Difference, ...]
    ours: Quantized
    decisions: Decisions | None


@contextmanager
def comparing() -> Iterator[None]:
    """Has to be open around `compare`: both sides keep the pattern graphs that are exported, as long as it is.

    torchao, which both sides use alike, exports patterns of its own for every graph with a batch norm.
    """
    with accelerate(["qat-fold"]), cached_peer():
        yield


def compare(captured: GraphModule, inputs: tuple[Any, ...], config: Any, *, qat: bool = False) -> Comparison:
    """Quantizes copies of `captured` with ours and with ExecuTorch's quantizer and compares the results.

    Arguments:
        captured: the module of an exported program. It is not changed.
        inputs: positional arguments to calibrate with.
        config: a coremltools `LinearQuantizerConfig`.
        qat: use `prepare_qat_pt2e`.
    """
    quantizer = CoreMLQuantizer(config)
    ours = quantize(captured, inputs, quantizer, qat=qat)
    theirs = quantize(captured, inputs, peer_quantizer(config), qat=qat, around_annotate=cleaned_once)
    return Comparison(tuple(differences(ours, theirs)), ours, quantizer.decisions)


def quantize(
    captured: GraphModule,
    inputs: tuple[Any, ...],
    quantizer: Quantizer,
    *,
    qat: bool = False,
    around_annotate: Callable[[GraphModule], AbstractContextManager[Any]] = lambda model: nullcontext(),
) -> Quantized:
    """Prepares, calibrates and converts a copy of `captured`, keeping a description of each stage's result."""
    result = Quantized()
    model = copy.deepcopy(captured)
    recorder = _Recorder(quantizer, around_annotate)
    try:
        model = (prepare_qat_pt2e if qat else prepare_pt2e)(model, recorder)
    except Exception as error:  # Any failure of any stage is a result to be compared.
        result.errors["prepare"] = error
        return result
    finally:
        result.annotations = recorder.annotations
    result.prepared = describe_module(model)
    try:
        _calibrate(model, inputs)
    except Exception as error:
        result.errors["calibrate"] = error
        # Observers take what fake quantization has no kernel for; the conversion is compared with what they saw.
        model.apply(disable_fake_quant)
        with suppress(Exception):
            _calibrate(model, inputs)
    try:
        result.converted = describe_module(convert_pt2e(model))
    except Exception as error:
        result.errors["convert"] = error
    return result


def _calibrate(model: GraphModule, inputs: tuple[Any, ...]) -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        model(*copy.deepcopy(inputs))


def differences(ours: Quantized, theirs: Quantized) -> list[Difference]:
    """In what two results differ.

    The quantizers phrase their own refusals each in its way, so what counts of a failed prepare is that it failed.
    Later stages are the same code on both sides, so there the words count too.
    """
    sides = (ours, theirs)
    if any("prepare" in side.errors for side in sides):
        raised = [repr(side.errors.get("prepare", "nothing raised")) for side in sides]
        return [] if all(side.errors for side in sides) else [Difference("prepare", "the model", *raised)]
    found = _unequal("annotation", ours.annotations, theirs.annotations)
    found = found or _unequal("prepared", ours.prepared, theirs.prepared)
    found = found or _unequal("error", *({stage: repr(e) for stage, e in side.errors.items()} for side in sides))
    return found or _unequal("converted", ours.converted, theirs.converted)


def describe_annotations(graph: Graph) -> dict[str, Any]:
    """The quantization annotation of each annotated node, by node name, as comparable values."""
    return {
        node.name: {
            "inputs": [(_name(n), describe_spec(spec)) for n, spec in annotation.input_qspec_map.items()],
            "output": describe_spec(annotation.output_qspec),
            "annotated": annotation._annotated,
            "implicit sharing": annotation.allow_implicit_sharing,
        }
        for node in graph.nodes
        if (annotation := node.meta.get(Q_ANNOTATION_KEY)) is not None
    }


def describe_spec(spec: Any) -> Any:
    """A quantization spec as nested tuples: class, fields, and the observer's constructor with its arguments."""
    if spec is None:
        return None
    if isinstance(spec, SharedQuantizationSpec):
        shared = spec.edge_or_node
        return ("shared with", _name(shared) if isinstance(shared, Node) else tuple(map(_name, shared)))
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    constructor = fields.pop("observer_or_fake_quant_ctr", None)
    partial = getattr(constructor, "p", None)
    if partial is not None:
        arguments = tuple((name, str(value)) for name, value in sorted(partial.keywords.items()))
        fields["constructor"] = (str(partial.func), partial.args, arguments)
    return (type(spec).__name__, *((name, str(value)) for name, value in fields.items()))


def describe_module(model: GraphModule) -> dict[str, Any]:
    """Everything of a graph module that decides what it computes: code, nodes, constants byte by byte, observers."""
    described: dict[str, Any] = {f"code line {i}": line for i, line in enumerate(model.code.splitlines())}
    for node in model.graph.nodes:
        described[f"node {node.name}"] = (node.op, str(node.target), str(node.args), str(node.kwargs))
    for name, tensor in _tensors(model):
        described[f"constant {name}"] = (
            str(tensor.dtype),
            tuple(tensor.shape),
            # A copy: a tensor that numpy has seen cannot be resized any more, which observers do.
            tensor.detach().clone().contiguous().view(-1).view(torch.uint8).numpy().tobytes(),
        )
    for name, module in model.named_modules():
        if name:
            described[f"module {name}"] = f"{type(module).__qualname__} {module.extra_repr()}"
    return described


def _tensors(model: GraphModule) -> list[tuple[str, torch.Tensor]]:
    registered = [*model.named_parameters(), *model.named_buffers()]
    plain = [
        (f"{prefix}.{name}" if prefix else name, value)
        for prefix, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, torch.Tensor)
    ]
    return [*registered, *plain]


class _Recorder(Quantizer):
    """Passes everything on to another quantizer and keeps a description of the annotations that it made."""

    def __init__(self, inner: Quantizer, around_annotate: Callable[[GraphModule], AbstractContextManager[Any]]) -> None:
        self._inner = inner
        self._around_annotate = around_annotate
        self.annotations: dict[str, Any] = {}

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        return self._inner.transform_for_annotation(model)

    def annotate(self, model: GraphModule) -> GraphModule:
        with self._around_annotate(model):
            self._inner.annotate(model)
        self.annotations = describe_annotations(model.graph)
        return model

    def validate(self, model: GraphModule) -> None:
        self._inner.validate(model)


def _unequal(aspect: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    found = [
        Difference(aspect, where, repr(ours.get(where, "absent")), repr(theirs.get(where, "absent")))
        for where in {**ours, **theirs}
        if ours.get(where, "absent") != theirs.get(where, "absent")
    ]
    if not found and list(ours) != list(theirs):
        found.append(Difference(aspect, "order", repr(list(ours)), repr(list(theirs))))
    return found


def _name(value: Any) -> str:
    return value.name if isinstance(value, Node) else repr(value)
