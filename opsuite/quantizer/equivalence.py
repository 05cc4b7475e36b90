"""Shows that two quantizers do the same to a model: annotations, prepared module, converted module."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer, SharedQuantizationSpec
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from opsuite.quantizer.oracle import cached_peer, cleaned_once, peer_quantizer
from opsuite.quantizer.quantizer import CoreMLQuantizer

STAGES = ("prepare", "calibrate", "convert")


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
    """What one quantizer made of a model, as far as it came. `error` is the failure of `failed_stage`, if any."""

    annotations: dict[str, Any] = field(default_factory=dict)
    prepared: dict[str, Any] = field(default_factory=dict)
    converted: dict[str, Any] = field(default_factory=dict)
    failed_stage: str | None = None
    error: BaseException | None = None


def compare(
    captured: GraphModule, inputs: tuple[Any, ...], config: Any, *, qat: bool = False
) -> tuple[list[Difference], Quantized]:
    """Quantizes copies of `captured` with ours and with ExecuTorch's quantizer and compares the results.

    Arguments:
        captured: the module of an exported program. It is not changed.
        inputs: positional arguments to calibrate with.
        config: a coremltools `LinearQuantizerConfig`.
        qat: use `prepare_qat_pt2e`.

    Returns:
        The differences, none if equal, and what ours made of it.
    """
    ours = quantize(captured, inputs, lambda: CoreMLQuantizer(config), qat=qat)
    with cached_peer():
        theirs = quantize(captured, inputs, lambda: peer_quantizer(config), qat=qat, around_annotate=cleaned_once)
    return differences(ours, theirs), ours


def quantize(
    captured: GraphModule,
    inputs: tuple[Any, ...],
    quantizer: Callable[[], Quantizer],
    *,
    qat: bool = False,
    around_annotate: Callable[[GraphModule], AbstractContextManager[Any]] = lambda model: nullcontext(),
) -> Quantized:
    """Prepares, calibrates and converts a copy of `captured`, keeping a description of each stage's result."""
    result = Quantized()
    stage = STAGES[0]
    try:
        model = copy.deepcopy(captured)
        recorder = _Recorder(quantizer(), around_annotate)
        prepare = prepare_qat_pt2e if qat else prepare_pt2e
        model = prepare(model, recorder)
        result.annotations = recorder.annotations
        result.prepared = describe_module(model)
        stage = STAGES[1]
        torch.manual_seed(0)
        with torch.no_grad():
            model(*copy.deepcopy(inputs))
        stage = STAGES[2]
        result.converted = describe_module(convert_pt2e(model))
    except Exception as error:  # Any failure of any stage is an outcome to be compared.
        result.failed_stage, result.error = stage, error
    return result


def differences(ours: Quantized, theirs: Quantized) -> list[Difference]:
    """In what two results differ. Failures are equal if they end the same stage.

    The quantizers phrase their own refusals each in its way; later stages are the same code, so the words count too.
    """
    failures = [
        f"{type(r.error).__name__} at {r.failed_stage}: {r.error}" if r.error else "none" for r in (ours, theirs)
    ]
    same_failure = ours.failed_stage == theirs.failed_stage and (
        ours.failed_stage in (None, "prepare") or failures[0] == failures[1]
    )
    if not same_failure:
        return [Difference("failure", "the model", *failures)]
    found = _unequal("annotation", ours.annotations, theirs.annotations)
    for aspect in ("prepared", "converted"):
        if not found:
            found = _unequal(aspect, getattr(ours, aspect), getattr(theirs, aspect))
    return found


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
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes(),
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
