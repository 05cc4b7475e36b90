"""torchao's convert_pt2e exports 96 QAT patterns for every graph that still holds a batch norm.

A pattern is built only when the graph holds the ops that this very pattern holds, and is then kept like the Core ML
patterns. In post-training quantization nothing takes the square root of a running variance, so nothing is built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F

from opsuite.accelerate.coreml_quantizer import ops_of
from opsuite.accelerate.pattern_cache import PatternCache, Scope, Unkeyed, closure_of, pattern_function
from opsuite.accelerate.seams import Installed, Part, Seam, names_in

_MODULE = "torchao.quantization.pt2e.qat_utils"
_BUILD = Seam(
    f"{_MODULE}:_get_aten_graph_module_for_pattern",
    parameters=("pattern", "example_inputs", "is_cuda", "**kwargs"),
    mentions=("export", "module", "eliminate_dead_code"),
)
_REPLACE = Seam(
    f"{_MODULE}:replace_pattern_with_filters",
    parameters=("gm", "pattern", "replacement", "match_filters", "ignore_literals", "replacement_callback",
                "node_name_match"),
)  # fmt: skip
_FOLD = Seam(
    f"{_MODULE}:_fold_conv_bn_qat_helper",
    parameters=("m", "conv_fn", "example_inputs", "is_cuda"),
    mentions=(
        "_get_aten_graph_module_for_pattern",
        "replace_pattern_with_filters",
        "_get_quantized_qat_conv_bn_pattern",
    ),
)

# Convolution of a pattern -> the aten ops it may export to.
_CONVOLUTIONS: dict[Any, frozenset[str]] = {
    F.conv1d: frozenset(("conv1d",)),
    F.conv2d: frozenset(("conv2d",)),
    F.conv3d: frozenset(("conv3d",)),
    F.conv_transpose1d: frozenset(("conv_transpose1d",)),
    F.conv_transpose2d: frozenset(("conv_transpose2d",)),
}

CACHE = PatternCache()
_folding = Scope()


@dataclass(frozen=True)
class Pending:
    """A pattern asked for inside the fold and not needed yet."""

    build: Callable[..., Any]
    arguments: tuple[Any, ...]
    kwargs: dict[str, Any]

    def graph(self) -> Any:
        return CACHE.get(self.build, *self.arguments, **self.kwargs)


def needed_ops(pattern: Any) -> list[frozenset[str]]:
    """Groups of op names; a graph that has none of one group cannot hold the pattern. Empty when nothing is known."""
    try:
        function = pattern_function(pattern)
        closure = closure_of(function)
    except Unkeyed:
        return []
    if not {"sqrt", "batch_norm", "reshape"} <= names_in(function):
        return []
    needed = [frozenset((op,)) for op in ("sqrt", "div", "mul", "batch_norm")]
    convolution = closure.get("conv_fn")
    if convolution in _CONVOLUTIONS:
        needed.append(_CONVOLUTIONS[convolution])
    if closure.get("is_per_channel") in (True, False):
        kind = "channel" if closure["is_per_channel"] else "tensor"
        needed.extend(frozenset((f"{way}_per_{kind}",)) for way in ("quantize", "dequantize"))
    return needed


def _install(originals: dict[str, Any]) -> Installed:
    build, replace, fold = (originals[seam.where] for seam in (_BUILD, _REPLACE, _FOLD))

    @functools.wraps(build)
    def build_later(pattern: Any, example_inputs: Any, is_cuda: bool = False, **kwargs: Any) -> Any:
        pending = Pending(build, (pattern, example_inputs, is_cuda), kwargs)
        return pending if _folding.value else pending.graph()

    @functools.wraps(replace)
    def replace_if_possible(gm: Any, pattern: Any, replacement: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(pattern, Pending):
            held = ops_of(gm.graph)
            if not all(held & needed for needed in needed_ops(pattern.arguments[0])):
                return []
            pattern = pattern.graph()
        if isinstance(replacement, Pending):
            replacement = replacement.graph()
        return replace(gm, pattern, replacement, *args, **kwargs)

    @functools.wraps(fold)
    def fold_lazily(*args: Any, **kwargs: Any) -> Any:
        with _folding.entered(True):
            return fold(*args, **kwargs)

    return {_BUILD.where: build_later, _REPLACE.where: replace_if_possible, _FOLD.where: fold_lazily}, CACHE.clear


PART = Part(
    "qat-fold",
    "torchao's convert_pt2e: build its QAT fold patterns only for graphs that can hold them, once each",
    (_BUILD, _REPLACE, _FOLD),
    _install,
)
