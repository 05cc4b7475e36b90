"""Random small models, as code, with a configuration: a hypothesis strategy that reaches what quantizers differ in.

Every tensor is `(2, 4, ..., 4)` with rank 2 to 5, so that almost any op can follow any other. A model is generated as
the text of a script, so what is printed when two quantizers differ is exactly what was compared.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from opsuite.quantizer import random_configs as configs
from opsuite.quantizer import random_ops as ops

_HEADER = """\
import operator

import torch
import torch.nn.functional as F
from coremltools.optimize.torch.quantization import LinearQuantizerConfig, ModuleLinearQuantizerConfig
from torch import nn
"""


@dataclass(frozen=True)
class RandomModel:
    """A script that defines `Model`, `INPUTS` and `CONFIG`, and how the model is captured and prepared.

    Attributes:
        script: the definitions.
        qat: prepare for quantization-aware training.
        training: capture in training mode.
        strict: capture through Dynamo, which knows the functions that ops come from.
        dynamic: the batch size is dynamic.
        dead_code: number of nodes, from the first on, that get an unused ReLU after the capture.
    """

    script: str
    qat: bool = False
    training: bool = False
    strict: bool = True
    dynamic: bool = False
    dead_code: int = 0

    def __str__(self) -> str:
        flags = ", ".join(f"{name}={getattr(self, name)}" for name in self.__dataclass_fields__ if name != "script")
        return f"{self.script}\n# {flags}\n"

    def load(self) -> dict[str, Any]:
        """Runs the script from a fixed seed; what it defines."""
        import torch

        torch.manual_seed(0)
        # Dynamo looks the module of a class up by its name.
        module = types.ModuleType("opsuite_random_model")
        sys.modules[module.__name__] = module
        exec(compile(self.script, "<random model>", "exec"), vars(module))
        return vars(module)

    def capture(self, defined: dict[str, Any]) -> Any:
        """The graph module of `Model`, as `torch.export` gives it. Raises whatever the model or the export raises."""
        import torch

        module = defined["Model"]().train(self.training)
        inputs = defined["INPUTS"]
        shapes = tuple({0: torch.export.Dim.AUTO} for _ in inputs) if self.dynamic else None
        captured = torch.export.export(module, inputs, dynamic_shapes=shapes, strict=self.strict).module()
        _add_dead_code(captured, self.dead_code)
        return captured


def _add_dead_code(captured: Any, count: int) -> None:
    import torch

    graph = captured.graph
    for node in [node for node in graph.nodes if node.op == "call_function"][:count]:
        with graph.inserting_after(node):
            graph.call_function(torch.ops.aten.relu.default, (node,))
    captured.recompile()


@dataclass
class _Draft:
    """One module's code as it grows.

    `values` are the tensors that later ops may use; while `chaining`, an op takes the latest one that it can.
    """

    draw: Callable[..., Any]
    prefix: str = ""
    values: list[ops.Value] = field(default_factory=list)
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    modules: list[tuple[str, int]] = field(default_factory=list)
    blocks: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0
    chaining: bool = False

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def flag(self, of: int = 4) -> bool:
        """True once in `of` times; shrinks to False."""
        return bool(self.draw(st.integers(0, of - 1)) == of - 1)

    def new_name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def value(self, accepts: Callable[[ops.Value], bool] = lambda value: True) -> ops.Value:
        """A tensor that `accepts` takes, often the latest."""
        fitting = [value for value in self.values if accepts(value)][::-1]
        return fitting[0] if self.chaining or not self.flag(2) else self.pick(fitting)

    def other(self, than: ops.Value, accepts: Callable[[ops.Value], bool]) -> ops.Value:
        """Another tensor than the one given, where there is one; now and then that one once more."""
        fitting = [value for value in self.values if accepts(value) and value != than][::-1]
        return self.pick(fitting) if fitting and not self.flag(8) else than

    def add_module(self, expression: str, rank: int) -> str:
        name = f"{self.prefix}m{len(self.init)}"
        self.init.append(f"self.{name} = {expression}")
        self.modules.append((name, rank))
        return name

    def assign(self, expression: str, rank: int, kind: str = "float") -> None:
        """Adds `name = expression`; now and then nothing uses it, which makes dead code of it."""
        name = self.new_name()
        self.forward.append(f"{name} = {expression}")
        if not self.flag(12):
            self.values.append(ops.Value(name, rank, kind))

    def text(self, class_name: str, parameters: str, result: str) -> str:
        init = "".join(f"        {line}\n" for line in self.init)
        forward = "".join(f"        {line}\n" for line in self.forward)
        return (
            f"class {class_name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n{init}\n"
            f"    def forward(self, {parameters}):\n{forward}        return {result}\n"
        )


def _is_float(value: ops.Value) -> bool:
    return value.kind == "float"


def _layer(draft: _Draft) -> None:
    value = draft.value(_is_float)
    if draft.flag(6):
        known = [name for name, rank in draft.modules if rank == value.rank]
        if known:
            draft.assign(f"self.{draft.pick(known)}({value})", value.rank)
            return
    row = draft.pick(ops.LAYERS[value.rank])
    options = "".join(f", {name}={draft.pick(choices)}" for name, choices in row.options.items() if draft.flag(3))
    name = draft.add_module(f"{row.call}{options})", value.rank)
    draft.assign(f"self.{name}({value})", value.rank)


def _functional_layer(draft: _Draft) -> None:
    value = draft.value(_is_float)
    call, shape = draft.pick(ops.FUNCTIONAL_LAYERS[value.rank])
    known = [line.partition(" ")[0] for line in draft.init if line.endswith(f"nn.Parameter(torch.randn({shape}))")]
    if known and draft.flag(2):
        weight = draft.pick(known)
    else:
        weight = f"self.{draft.prefix}w{len(draft.init)}"
        draft.init.append(f"{weight} = nn.Parameter(torch.randn({shape}))")
    draft.assign(call.format(x=value, w=weight), value.rank)


def _batch_norm(draft: _Draft) -> None:
    value = draft.value(_is_float)
    options = "".join(f", {option}=False" for option in ("affine", "track_running_stats") if draft.flag(6))
    name = draft.add_module(f"{ops.BATCH_NORMS[value.rank]}(4{options})", value.rank)
    draft.assign(f"self.{name}({value})", value.rank)


def _activation(draft: _Draft) -> None:
    value = draft.value(_is_float)
    row = draft.pick(ops.ACTIVATIONS)
    form = draft.pick(tuple(form for form in (row.module, row.function, row.in_place) if form))
    if form == row.module:
        name = draft.add_module(form, 0)
        draft.assign(f"self.{name}({value})", value.rank)
    elif form == row.in_place and draft.flag(4):
        draft.forward.append(form.format(x=value))
    else:
        draft.assign(form.format(x=value), value.rank)


def _binary(draft: _Draft) -> None:
    left = draft.value()
    right = draft.other(left, lambda value: value.rank == left.rank)
    same_kind = left.kind == right.kind and left.kind != "bool"
    forms = [
        *ops.BINARY,
        *(ops.BINARY_SAME_KIND if same_kind else ()),
        *(ops.BINARY_FLOAT if left.kind == right.kind == "float" else ()),
    ]
    if left.kind == right.kind == "float" and left.rank > 2:
        forms += ops.PRODUCTS
    kind = "float" if "float" in (left.kind, right.kind) else "int" if "int" in (left.kind, right.kind) else "bool"
    draft.assign(draft.pick(forms).format(x=left, y=right), left.rank, kind)


def _binary_in_place(draft: _Draft) -> None:
    left = draft.value(lambda value: value.kind != "bool")
    right = draft.other(left, lambda value: value.rank == left.rank)
    if right.kind not in (left.kind, "bool"):
        right = left
    draft.forward.append(draft.pick(ops.BINARY_IN_PLACE).format(x=left, y=right))


def _scalar(draft: _Draft) -> None:
    value = draft.value(lambda value: value.kind != "bool")
    draft.assign(draft.pick(ops.SCALAR).format(x=value), value.rank, value.kind)


def _keeping(draft: _Draft) -> None:
    value = draft.value(_is_float)
    draft.assign(draft.pick((*ops.KEEPING, *ops.POOLS.get(value.rank, ()))).format(x=value), value.rank)


def _pool_module(draft: _Draft) -> None:
    value = draft.value(_is_float)
    rows = ops.POOL_MODULES.get(value.rank)
    if rows is None:
        return _activation(draft)
    name = draft.add_module(draft.pick(rows), value.rank)
    return draft.assign(f"self.{name}({value})", value.rank)


def _flatten(draft: _Draft) -> None:
    value = draft.value(_is_float)
    form, start = draft.pick(tuple((form, start) for form in ops.FLATTENS for start in (1, max(1, value.rank - 2))))
    flat = draft.new_name()
    draft.forward.append(f"{flat} = {form.format(x=value, start=start)}")
    rank = start + 1
    width = 4 ** (value.rank - start)
    if draft.flag(2):
        name = draft.add_module(f"nn.Linear({width}, 4)", 0) if width > 4 else draft.add_module("nn.Linear(4, 4)", 0)
        draft.assign(f"self.{name}({flat})", rank)
    else:
        draft.assign(f"{flat}[..., :4]", rank)


def _rank(draft: _Draft) -> None:
    value = draft.value(_is_float)
    forms = [(form, value.rank - 1) for form in ops.RANK_DOWN if value.rank > 2]
    forms += [(form, value.rank + 1) for form in ops.RANK_UP if value.rank < 5]
    if value.rank > 2:
        forms.append((ops.GLOBAL_POOLS[value.rank], 2))
    form, rank = draft.pick(forms)
    draft.assign(form.format(x=value, repeats=", ".join(["1"] * value.rank)), rank)


def _kinds(draft: _Draft) -> None:
    value = draft.value()
    form, kind = draft.pick(ops.KINDS[value.kind])
    draft.assign(form.format(x=value), value.rank, kind)


def _block(draft: _Draft) -> None:
    value = draft.value(_is_float)
    fitting = [name for name, rank in draft.blocks if rank == value.rank]
    if not fitting:
        return _layer(draft)
    return draft.assign(f"self.{draft.pick(fitting)}({value})", value.rank)


def _chain(draft: _Draft) -> None:
    """What patterns are made of: a layer or a binary op, then a batch norm, an activation, a pool, each on the last."""
    draft.pick((_layer, _functional_layer, _binary, _binary_in_place))(draft)
    draft.chaining = True
    if draft.flag(2):
        _batch_norm(draft)
    if not draft.flag(4):
        _activation(draft)
    if draft.flag(4):
        draft.pick((_pool_module, _flatten, _keeping))(draft)
    draft.chaining = False


# Steps that are drawn often come several times. The first are the simplest, which models are shrunk to.
_STEPS = (
    _activation,
    _activation,
    _scalar,
    _binary,
    _binary,
    _layer,
    _layer,
    _functional_layer,
    _batch_norm,
    _chain,
    _chain,
    _chain,
    _chain,
    _keeping,
    _pool_module,
    _flatten,
    _binary_in_place,
    _rank,
    _block,
    _block,
    _kinds,
)


def _block_text(draft: _Draft, rank: int) -> tuple[str, _Draft]:
    block = _Draft(draft.draw, values=[ops.Value("x", rank)])
    for step in range(draft.draw(st.integers(1, 3))):
        (_layer, _activation, _batch_norm, _binary, _scalar)[draft.draw(st.integers(0, 4)) if step else 0](block)
    fitting = [value for value in block.values if value.rank == rank]
    return block.text("Block", "x", str(fitting[-1])), block


@st.composite
def _steps(draw: Callable[..., Any], draft: _Draft) -> None:
    """One step. A strategy of its own, so that shrinking can take a step out with all that was drawn for it."""
    draw(st.sampled_from(_STEPS))(draft)


@st.composite
def random_models(draw: Callable[..., Any], max_steps: int = 9) -> RandomModel:
    """Models of up to `max_steps` ops besides those of a nested block."""
    model = _Draft(draw)
    rank = model.pick((4, 3, 2, 5, 4))
    inputs = [ops.Value("x", rank)]
    for name, kind in (("y", "float"), ("i", "int"), ("b", "bool")):
        if model.flag(3 if kind == "float" else 10):
            inputs.append(ops.Value(name, rank, kind))
    model.values = inputs[::-1]
    text = ""
    names: list[str] = []
    types = list(configs.TYPES)
    if model.flag(3):
        text, block = _block_text(model, rank)
        text += "\n\n"
        types.append("Block")
        for name in ("block0", "block1")[: draw(st.integers(1, 2))]:
            model.init.append(f"self.{name} = Block()")
            model.blocks.append((name, rank))
            names += [name, *(f"{name}.{inner}" for inner, _ in block.modules)]
    draw(st.lists(_steps(model), min_size=1, max_size=max_steps))
    names = [*(name for name, _ in model.modules), *names]
    outputs = [str(model.values[-1]), *(str(value) for value in model.values[:-1] if model.flag(8))]
    text += model.text(
        "Model", ", ".join(map(str, inputs)), outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    )
    arguments = ", ".join(
        ops.EXAMPLES[value.kind].format(shape=", ".join(["2", *["4"] * (rank - 1)])) for value in inputs
    )
    script = f"{_HEADER}\n\n{text}\n\nINPUTS = ({arguments},)\nCONFIG = {configs.config_text(draw, names, types)}\n"
    qat = bool(draw(st.booleans()))
    return RandomModel(
        script,
        qat=qat,
        training=qat and model.flag(2),
        strict=not model.flag(4),
        dynamic=model.flag(5),
        dead_code=draw(st.integers(0, 3)) if model.flag(5) else 0,
    )
