"""The operator patterns that the Core ML quantizer knows, as data.

A pattern is a chain: a core op, then optionally a batch norm, then optionally an activation. Families put patterns in
the order in which they are tried; that order is part of the result, because a node annotated by one pattern is left
alone by every later one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.fx import Graph, GraphModule, Node

aten = torch.ops.aten


class Operand(NamedTuple):
    """A place in an op's argument list that takes any tensor, by the name that the pattern gives it."""

    name: str


class Rule(Enum):
    """How the nodes of a match are annotated."""

    WEIGHTED = "weighted"
    BINARY = "binary"
    SHARED = "shared"


@dataclass(frozen=True)
class Op:
    """One aten op of a chain: its overload and the arguments after the chained one, as a strict export writes them."""

    target: Any
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Core:
    """A core op: `function` is the eager function of the same name, `rule` says how a match is annotated."""

    name: str
    function: Callable[..., Any]
    op: Op
    rule: Rule


@dataclass(frozen=True)
class Activation:
    """An activation with its in-place form, or None where PyTorch has no in-place form of the function."""

    name: str
    function: Callable[..., Any]
    op: Op
    in_place: Op | None = None


_WEIGHTED_OPERANDS = (Operand("input"), Operand("weight"), Operand("bias"))
_BINARY_OPERANDS = (Operand("input_1"), Operand("input_2"))

CORES: dict[str, Core] = {
    core.name: core
    for core in (
        Core("conv1d", F.conv1d, Op(aten.conv1d.default, _WEIGHTED_OPERANDS), Rule.WEIGHTED),
        Core("conv2d", F.conv2d, Op(aten.conv2d.default, _WEIGHTED_OPERANDS), Rule.WEIGHTED),
        Core("conv3d", F.conv3d, Op(aten.conv3d.default, _WEIGHTED_OPERANDS), Rule.WEIGHTED),
        Core("linear", F.linear, Op(aten.linear.default, _WEIGHTED_OPERANDS), Rule.WEIGHTED),
        Core("add", torch.add, Op(aten.add.Tensor, _BINARY_OPERANDS), Rule.BINARY),
        Core("add_", operator.iadd, Op(aten.add_.Tensor, _BINARY_OPERANDS), Rule.BINARY),
        Core("mul", torch.mul, Op(aten.mul.Tensor, _BINARY_OPERANDS), Rule.BINARY),
        Core("mul_", operator.imul, Op(aten.mul_.Tensor, _BINARY_OPERANDS), Rule.BINARY),
        Core("matmul", torch.matmul, Op(aten.matmul.default, _BINARY_OPERANDS), Rule.BINARY),
    )
}

BATCH_NORM = Op(
    aten.batch_norm.default,
    (Operand("bn_weight"), Operand("bn_bias"), Operand("bn_run_mean"), Operand("bn_run_var"), True, 0.1, 1e-5, False),
)

ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("relu", F.relu, Op(aten.relu.default), Op(aten.relu_.default)),
        Activation("relu6", F.relu6, Op(aten.relu6.default), Op(aten.relu6_.default)),
        Activation("leaky_relu", F.leaky_relu, Op(aten.leaky_relu.default), Op(aten.leaky_relu_.default)),
        Activation("silu", F.silu, Op(aten.silu.default), Op(aten.silu_.default)),
        Activation("elu", F.elu, Op(aten.elu.default, (1.0,)), Op(aten.elu_.default, (1.0,))),
        Activation("celu", F.celu, Op(aten.celu.default), Op(aten.celu_.default)),
        Activation("selu", F.selu, Op(aten.selu.default), Op(aten.selu_.default)),
        Activation("mish", F.mish, Op(aten.mish.default), Op(aten.mish_.default)),
        Activation(
            "hardtanh", F.hardtanh, Op(aten.hardtanh.default, (-1.0, 1.0)), Op(aten.hardtanh_.default, (-1.0, 1.0))
        ),
        Activation("hardswish", F.hardswish, Op(aten.hardswish.default), Op(aten.hardswish_.default)),
        Activation("hardsigmoid", F.hardsigmoid, Op(aten.hardsigmoid.default), Op(aten.hardsigmoid_.default)),
        Activation("gelu", F.gelu, Op(aten.gelu.default)),
        Activation("sigmoid", F.sigmoid, Op(aten.sigmoid.default)),
        Activation("logsigmoid", F.logsigmoid, Op(aten.log_sigmoid.default)),
        Activation("tanh", F.tanh, Op(aten.tanh.default)),
    )
}


class Key(NamedTuple):
    """Names one pattern. `activation` is None for none; `in_place` is about the activation."""

    core: str
    batch_norm: bool = False
    activation: str | None = None
    in_place: bool = False

    def __str__(self) -> str:
        parts = [self.core]
        if self.batch_norm:
            parts.append("batch_norm")
        if self.activation is not None:
            parts.append(self.activation + ("_" if self.in_place else ""))
        return "+".join(parts)


@dataclass(frozen=True)
class Pattern:
    """A chain of ops with the rank at which it is tried. `chain` runs from the anchor (the last op) to the core."""

    key: Key
    rank: int
    chain: tuple[Op, ...] = field(repr=False)

    @property
    def rule(self) -> Rule:
        return CORES[self.key.core].rule


@dataclass(frozen=True)
class Family:
    """Patterns, or source functions of the shared-qparams rule, that one step of the quantizer tries together."""

    name: str
    rule: Rule
    cores: tuple[str, ...] = ()
    batch_norm: bool = False
    activated: bool = False
    sources: tuple[Any, ...] = ()


_CONVS = ("conv1d", "conv2d", "conv3d")
nn = torch.nn

FAMILIES: tuple[Family, ...] = (
    Family("conv_act", Rule.WEIGHTED, _CONVS, activated=True),
    Family("conv_bn_act", Rule.WEIGHTED, _CONVS, batch_norm=True, activated=True),
    Family("conv_bn", Rule.WEIGHTED, _CONVS, batch_norm=True),
    Family("conv", Rule.WEIGHTED, _CONVS),
    Family("linear_act", Rule.WEIGHTED, ("linear",), activated=True),
    Family("linear_bn_act", Rule.WEIGHTED, ("linear",), batch_norm=True, activated=True),
    Family("linear_bn", Rule.WEIGHTED, ("linear",), batch_norm=True),
    Family("linear", Rule.WEIGHTED, ("linear",)),
    Family("add_act", Rule.BINARY, ("add", "add_"), activated=True),
    Family("add", Rule.BINARY, ("add", "add_")),
    Family("mul_act", Rule.BINARY, ("mul", "mul_"), activated=True),
    Family("mul", Rule.BINARY, ("mul", "mul_")),
    Family("matmul_act", Rule.BINARY, ("matmul",), activated=True),
    Family("matmul", Rule.BINARY, ("matmul",)),
    Family("max_pool1d", Rule.SHARED, sources=(nn.MaxPool1d, F.max_pool1d, torch.max_pool1d)),
    Family("max_pool2d", Rule.SHARED, sources=(nn.MaxPool2d, F.max_pool2d, torch.max_pool2d)),
    Family("max_pool3d", Rule.SHARED, sources=(nn.MaxPool3d, F.max_pool3d, torch.max_pool3d)),
    Family(
        "adaptive_avg_pool1d",
        Rule.SHARED,
        sources=(nn.AdaptiveAvgPool1d, F.adaptive_avg_pool1d, torch.adaptive_avg_pool1d),
    ),
    Family("adaptive_avg_pool2d", Rule.SHARED, sources=(nn.AdaptiveAvgPool2d, F.adaptive_avg_pool2d)),
    Family("adaptive_avg_pool3d", Rule.SHARED, sources=(nn.AdaptiveAvgPool3d, F.adaptive_avg_pool3d)),
    Family("avg_pool1d", Rule.SHARED, sources=(nn.AvgPool1d, F.avg_pool1d, torch.avg_pool1d, torch.mean)),
    Family("avg_pool2d", Rule.SHARED, sources=(nn.AvgPool2d, F.avg_pool2d)),
    Family("avg_pool3d", Rule.SHARED, sources=(nn.AvgPool3d, F.avg_pool3d)),
    Family("flatten", Rule.SHARED, sources=(nn.Flatten, torch.flatten)),
)


def family_keys(family: Family) -> Iterator[Key]:
    """The keys of a family, in the order in which they are tried.

    Activations that have an in-place form come first, for every core op; the in-place form of each goes before the
    plain one.
    """
    if family.rule is Rule.SHARED:
        return
    if not family.activated:
        yield from (Key(core, family.batch_norm) for core in family.cores)
        return
    with_in_place = [name for name, activation in ACTIVATIONS.items() if activation.in_place is not None]
    plain_only = [name for name, activation in ACTIVATIONS.items() if activation.in_place is None]
    for core, name, in_place in product(family.cores, with_in_place, (True, False)):
        yield Key(core, family.batch_norm, name, in_place)
    for core, name in product(family.cores, plain_only):
        yield Key(core, family.batch_norm, name)


def _chain(key: Key) -> tuple[Op, ...]:
    chain: list[Op] = []
    if key.activation is not None:
        activation = ACTIVATIONS[key.activation]
        op = activation.in_place if key.in_place else activation.op
        if op is None:
            raise KeyError(f"{key.activation} has no in-place form")
        chain.append(op)
    if key.batch_norm:
        chain.append(BATCH_NORM)
    chain.append(CORES[key.core].op)
    return tuple(chain)


def _table() -> dict[Key, Pattern]:
    keys = [key for family in FAMILIES for key in family_keys(family)]
    return {key: Pattern(key, rank, _chain(key)) for rank, key in enumerate(keys)}


PATTERNS: dict[Key, Pattern] = _table()


def parse_key(text: str) -> Key:
    """The key written as `core[+batch_norm][+activation[_]]`, for example `conv2d+batch_norm+relu_`.

    Raises:
        KeyError: no pattern has that key; the message names the core ops and activations there are.
    """
    for key in PATTERNS:
        if str(key) == text:
            return key
    raise KeyError(
        f"no pattern {text!r}; a key is CORE[+batch_norm][+ACTIVATION[_]] with CORE one of {', '.join(CORES)} "
        f"(batch_norm only after convolutions and linear) and ACTIVATION one of {', '.join(ACTIVATIONS)}"
    )


def pattern_graph(key: Key | str) -> GraphModule:
    """A fresh graph of the pattern: placeholders, the chain, and `(result, {name: node})` as its output.

    The output names the nodes `input`, `mod`, `weight`, `bias`, `output` (or `binary_op`, `output`), as torch's
    `SubgraphMatcherWithNameNodeMap` wants them. An in-place activation straight after the core op overwrites the core
    op's result, so there "mod" and "binary_op" name the activation.

    Raises:
        KeyError: no pattern has that key.
    """
    key = parse_key(key) if isinstance(key, str) else key
    pattern = PATTERNS[key]
    graph = Graph()
    operands = {
        argument.name: graph.placeholder(argument.name)
        for op in reversed(pattern.chain)
        for argument in op.arguments
        if isinstance(argument, Operand)
    }
    chain: list[Node] = []
    for op in reversed(pattern.chain):
        arguments = tuple(operands[a.name] if isinstance(a, Operand) else a for a in op.arguments)
        chain.append(graph.call_function(op.target, (*chain[-1:], *arguments)))
    core, node = chain[0], chain[-1]
    overwritten = key.in_place and not key.batch_norm
    names: dict[str, Node] = {}
    if pattern.rule is Rule.WEIGHTED:
        names["input"] = operands["input"]
        names["mod"] = node if overwritten else core
        names["weight"], names["bias"] = operands["weight"], operands["bias"]
    else:
        names["binary_op"] = node if overwritten else core
    if len(pattern.chain) > 1:
        names["output"] = node
    return _with_tree_output(graph, list(operands), (node, names))


def _with_tree_output(graph: Graph, arguments: list[str], result: Any) -> GraphModule:
    """The module of `graph`, taking `arguments` and giving the nested `result`, in the form that torch.export gives."""
    from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo
    from torch.utils import _pytree as pytree

    leaves, out_spec = pytree.tree_flatten(result)
    _, in_spec = pytree.tree_flatten((tuple(arguments), {}))
    graph.output(tuple(leaves))
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(arguments, in_spec, out_spec)))
    graph.lint()
    return GraphModule(torch.nn.Module(), graph)
