"""Stage quantize: capture, prepare, calibrate, convert (PT2E)."""

from __future__ import annotations

from typing import Any

import torch

from opsuite.pipeline.state import Sample, State
from opsuite.pipeline.tensors import copied, flat_outputs

ANNOTATION_KEY = "quantization_annotation"
"""Where torchao keeps a node's annotation in `node.meta`."""


def run(state: State) -> None:
    """Sets `program` to the converted module, and both samples' converted outputs."""
    from executorch.backends.transforms.duplicate_dynamic_quant_chain import DuplicateDynamicQuantChainPass
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

    assert state.flow.quantizer is not None and state.calibration is not None and state.test is not None
    if state.flow.is_qat:
        state.built.module.train()
    with state.timed("quantize.capture"):
        captured = torch.export.export(state.built.module, copied(state.built.inputs), strict=True).module()
    with state.timed("quantize.prepare"):
        prepare = prepare_qat_pt2e if state.flow.is_qat else prepare_pt2e
        prepared = prepare(captured, state.flow.quantizer())
    state.quantized_nodes = sum(_is_annotated(node) for node in prepared.graph.nodes)
    with state.timed("quantize.calibrate"):
        prepared(*copied(state.calibration.inputs))
    with state.timed("quantize.convert"):
        converted = convert_pt2e(prepared)
        # A dynamically quantized activation with several users needs a chain of its own for each.
        DuplicateDynamicQuantChainPass()(converted)
    state.qdq_nodes = sum(_is_quantize_or_dequantize(node) for node in converted.graph.nodes)
    for sample in {id(s): s for s in (state.calibration, state.test)}.values():
        sample.converted_outputs = _outputs(converted, sample)
    state.program = converted


def _outputs(program: Any, sample: Sample) -> list[torch.Tensor]:
    with torch.no_grad():
        return flat_outputs(program(*copied(sample.inputs)))


def _is_annotated(node: torch.fx.Node) -> bool:
    annotation = node.meta.get(ANNOTATION_KEY)
    return annotation is not None and bool(annotation._annotated)


def _is_quantize_or_dequantize(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and str(node.target).startswith("quantized_decomposed.")
