"""The Core ML quantizers of executorch and coremltools export 405 pattern graphs for every model they annotate.

With strategy "cache" a pattern is exported when the model holds the ops it needs, once in a process, and every use gets
a fresh copy. A pattern whose ops do not all occur in the model cannot match, so it is neither exported nor copied.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from opsuite.accelerate.pattern_cache import PatternCache, Scope, Unkeyed, closure_of, pattern_function
from opsuite.accelerate.seams import Installed, Part, Seam, names_in

# Core function of a pattern -> name of the aten op it exports to.
CORE_OPS: dict[Any, str] = {
    F.conv1d: "conv1d",
    F.conv2d: "conv2d",
    F.conv3d: "conv3d",
    F.linear: "linear",
    operator.add: "add",
    torch.add: "add",
    operator.iadd: "add_",
    operator.mul: "mul",
    torch.mul: "mul",
    operator.imul: "mul_",
    torch.matmul: "matmul",
}

# Activation of a pattern -> name of the aten op, to which an in-place call adds "_".
ACTIVATION_OPS: dict[Any, str] = {
    F.relu: "relu",
    F.relu6: "relu6",
    F.leaky_relu: "leaky_relu",
    F.silu: "silu",
    F.elu: "elu",
    F.celu: "celu",
    F.selu: "selu",
    F.mish: "mish",
    F.hardtanh: "hardtanh",
    F.hardswish: "hardswish",
    F.hardsigmoid: "hardsigmoid",
    F.gelu: "gelu",
    F.sigmoid: "sigmoid",
    F.logsigmoid: "log_sigmoid",
    F.tanh: "tanh",
}

CACHE = PatternCache()
_scope = Scope()


@dataclass(frozen=True)
class Pending:
    """A pattern asked for inside `annotate` and not needed yet."""

    build: Callable[..., Any]
    pattern: Any
    inputs: Any
    args: tuple[Any, ...]

    def graph(self) -> Any:
        return CACHE.get(self.build, self.pattern, self.inputs, *self.args)


class Annotating:
    """One call of `annotate`: the model is cleaned when the first pattern comes, and asked once what ops it holds."""

    def __init__(self) -> None:
        self._ops: dict[int, frozenset[str]] = {}

    def can_match(self, model: Any, pending: Pending) -> bool:
        if id(model) not in self._ops:
            model.graph.eliminate_dead_code()
            model.recompile()
            self._ops[id(model)] = ops_of(model.graph)
        ops = self._ops[id(model)]
        return all(ops & needed for needed in needed_ops(pending.pattern))


def ops_of(graph: Any) -> frozenset[str]:
    """Names of the ops a graph calls, without namespace and overload."""
    targets = (node.target for node in graph.nodes if node.op == "call_function")
    return frozenset(t._schema.name.partition("::")[2] for t in targets if isinstance(t, torch._ops.OpOverload))


def needed_ops(pattern: Any) -> list[frozenset[str]]:
    """Groups of op names; a model that has none of one group cannot hold the pattern. Empty when nothing is known."""
    try:
        function = pattern_function(pattern)
        closure = closure_of(function)
        core = CORE_OPS.get(closure.get("mod_fn", closure.get("binary_op")))
        activation = closure.get("act_fn")
        needed = [] if core is None else [frozenset((core,))]
        if activation in ACTIVATION_OPS:
            needed.append(frozenset((ACTIVATION_OPS[activation], ACTIVATION_OPS[activation] + "_")))
    except (Unkeyed, TypeError):
        return []
    if "batch_norm" in names_in(function):
        needed.append(frozenset(("batch_norm",)))
    return needed


def _install(module: str, cls: str) -> Callable[[dict[str, Any]], Installed]:
    def install(originals: dict[str, Any]) -> Installed:
        build = originals[f"{module}_utils:_get_aten_graph_module"]

        @functools.wraps(build)
        def build_later(pattern: Any, example_inputs: Any, *args: Any) -> Any:
            pending = Pending(build, pattern, example_inputs, args)
            return pending if _scope.value is not None else pending.graph()

        def annotating(name: str) -> Any:
            original = originals[f"{module}_utils:{name}"]

            @functools.wraps(original)
            def annotate_pattern(model: Any, pattern_gm: Any, *args: Any, **kwargs: Any) -> Any:
                if isinstance(pattern_gm, Pending):
                    if _scope.value is not None and not _scope.value.can_match(model, pattern_gm):
                        return []
                    pattern_gm = pattern_gm.graph()
                return original(model, pattern_gm, *args, **kwargs)

            return annotate_pattern

        annotate = originals[f"{module}:{cls}.annotate"]

        @functools.wraps(annotate)
        def annotate_model(self: Any, model: Any) -> Any:
            with _scope.entered(Annotating()):
                return annotate(self, model)

        return {
            f"{module}_utils:_get_aten_graph_module": build_later,
            **{f"{module}_utils:{name}": annotating(name) for name in _ANNOTATORS},
            f"{module}:{cls}.annotate": annotate_model,
        }, CACHE.clear

    return install


_ANNOTATORS = ("annotate_weighted_mod_pattern", "annotate_binary_op_act_pattern")


def _seams(module: str, cls: str) -> tuple[Seam, ...]:
    arguments = ("model", "pattern_gm", "quantization_config", "filter_fn")
    return (
        Seam(
            f"{module}_utils:_get_aten_graph_module",
            parameters=("pattern", "example_inputs", "is_cuda"),
            mentions=("_get_aten_graph_module_for_pattern",),
        ),
        *(
            Seam(
                f"{module}_utils:{name}",
                parameters=arguments,
                mentions=("_SubgraphMatcherWithNameNodeMap", "eliminate_dead_code", "recompile"),
            )
            for name in _ANNOTATORS
        ),
        Seam(f"{module}:{cls}.annotate", parameters=("self", "model"), mentions=("_annotate_all_patterns",)),
    )


_EXECUTORCH = ("executorch.backends.apple.coreml.quantizer._coreml_quantizer", "CoreMLQuantizer")
_COREMLTOOLS = ("coremltools.optimize.torch.quantization._coreml_quantizer", "CoreMLQuantizer")

EXECUTORCH = Part(
    "coreml-quantizer",
    "executorch's CoreMLQuantizer: export only patterns the model can hold, once each, and use copies",
    _seams(*_EXECUTORCH),
    _install(*_EXECUTORCH),
)
COREMLTOOLS = Part(
    "coremltools-quantizer",
    "coremltools' copy of the same quantizer: likewise",
    _seams(*_COREMLTOOLS),
    _install(*_COREMLTOOLS),
)


_OURS = Seam("opsuite.quantizer:CoreMLQuantizer")


def _table(module: str, cls: str) -> Part:
    """The part that leaves annotating to opsuite's quantizer, which has the patterns as a table."""
    seam = Seam(
        f"{module}:{cls}.annotate", parameters=("self", "model"), mentions=("_annotate_all_patterns", "_config")
    )

    def install(originals: dict[str, Any]) -> Installed:
        annotate, ours = originals[seam.where], originals[_OURS.where]

        @functools.wraps(annotate)
        def annotate_by_table(self: Any, model: Any) -> Any:
            return ours(self._config).annotate(model)

        return {seam.where: annotate_by_table}, None

    return Part(
        EXECUTORCH.name, "executorch's CoreMLQuantizer: opsuite's table of patterns, no exports", (seam, _OURS), install
    )


EXECUTORCH_TABLE = _table(*_EXECUTORCH)
