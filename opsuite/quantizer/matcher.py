"""Finds the patterns of the table in a graph, in one pass over its nodes.

A pattern is a chain, so the op of a node and the ops of at most two producers above it name the only pattern that can
end there. What comes so near and still fails is kept, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch.fx import Graph, Node

from opsuite.quantizer.patterns import PATTERNS, Op, Operand, Pattern


class Reason(Enum):
    """Why a pattern was not annotated at a place where its ops occur."""

    SEVERAL_USERS = "several users"
    REPEATED_OPERAND = "repeated operand"
    ARGUMENT_FORM = "argument form"
    ALREADY_ANNOTATED = "already annotated"
    FILTERED = "filtered"
    ORIGIN_UNKNOWN = "origin unknown"
    DTYPE = "dtype"
    INPUT_NOT_QUANTIZED = "input not quantized"
    NO_ACTIVATION_SPEC = "activations stay float"


@dataclass(frozen=True)
class Match:
    """A pattern found at `nodes`, which run from the anchor to the core; `operands` maps pattern names to arguments.

    Operands are nodes, or literals and None where the graph has those.
    """

    pattern: Pattern
    nodes: tuple[Node, ...]
    operands: dict[str, Any] = field(hash=False)

    @property
    def anchor(self) -> Node:
        return self.nodes[0]

    @property
    def core(self) -> Node:
        return self.nodes[-1]


@dataclass(frozen=True)
class Rejection:
    """A near-miss: `nodes` have the ops of `pattern`, but it does not apply, for `reason` (`detail` in words)."""

    pattern: Pattern
    nodes: tuple[Node, ...]
    reason: Reason
    detail: str


@dataclass(frozen=True)
class Findings:
    """Matches in the order in which they are to be annotated (pattern, then place in the graph), and near-misses."""

    matches: tuple[Match, ...]
    rejections: tuple[Rejection, ...]


def _build_index(patterns: Iterable[Pattern]) -> dict[tuple[Any, ...], Pattern]:
    index: dict[tuple[Any, ...], Pattern] = {}
    for pattern in patterns:
        targets = tuple(op.target for op in pattern.chain)
        if targets in index:
            raise ValueError(f"patterns {index[targets].key} and {pattern.key} are the same chain")
        index[targets] = pattern
    return index


_INDEX = _build_index(PATTERNS.values())
_ANCHORS = frozenset(targets[0] for targets in _INDEX)
_LONGEST = max(map(len, _INDEX))


def find_matches(graph: Graph, repeated_operands: bool = False) -> Findings:
    """All matches of the table's patterns in `graph`.

    Arguments:
        graph: a graph of aten ops, as `torch.export` gives it, without dead code. It is not changed.
        repeated_operands: also match ops that take the same tensor twice, such as `x + x`.
    """
    matches: list[tuple[int, int, Match]] = []
    rejections: list[Rejection] = []
    for position, node in enumerate(graph.nodes):
        if node.op != "call_function" or node.target not in _ANCHORS:
            continue
        for pattern, nodes in _candidates(node):
            outcome = _match(pattern, nodes, repeated_operands)
            if isinstance(outcome, Match):
                matches.append((pattern.rank, position, outcome))
            else:
                rejections.append(outcome)
    matches.sort(key=lambda entry: entry[:2])
    return Findings(tuple(match for _, _, match in matches), tuple(rejections))


def _candidates(anchor: Node) -> Iterable[tuple[Pattern, tuple[Node, ...]]]:
    """The patterns whose ops are those of `anchor` and its producers, with the nodes of each."""
    nodes: list[Node] = []
    node: Any = anchor
    while isinstance(node, Node) and node.op == "call_function" and len(nodes) < _LONGEST:
        nodes.append(node)
        pattern = _INDEX.get(tuple(n.target for n in nodes))
        if pattern is not None:
            yield pattern, tuple(nodes)
        node = node.args[0] if node.args else None


def _match(pattern: Pattern, nodes: tuple[Node, ...], repeated_operands: bool) -> Match | Rejection:
    operands: dict[str, Any] = {}
    # An op that reads one tensor in two places is not the pattern's op, which has a place for each of two tensors.
    seen: set[Node] = set(nodes)
    for depth, (op, node) in enumerate(zip(pattern.chain, nodes, strict=True)):
        chained = depth + 1 < len(nodes)
        arguments = _align(op, node, chained)
        if arguments is None:
            return Rejection(
                pattern,
                nodes,
                Reason.ARGUMENT_FORM,
                f"{node.name} gives {op.target} arguments of another form than the pattern's: {node.args}",
            )
        for name, value in arguments:
            if isinstance(value, Node):
                if value in seen and not repeated_operands:
                    return Rejection(
                        pattern,
                        nodes,
                        Reason.REPEATED_OPERAND,
                        f"{node.name} reads {value.name} more than once",
                    )
                seen.add(value)
            operands[name] = value
    inside = set(nodes)
    for node in nodes[1:]:
        outside = [user.name for user in node.users if user not in inside]
        if outside:
            return Rejection(
                pattern,
                nodes,
                Reason.SEVERAL_USERS,
                f"{node.name} is also used by {', '.join(outside)}",
            )
    return Match(pattern, nodes, operands)


def _align(op: Op, node: Node, chained: bool) -> list[tuple[str, Any]] | None:
    """Pairs the operands of `op` with arguments of `node`; None if a list argument has another length.

    Literals need not be equal: a stride or a slope differs from model to model. A list literal must have the length
    that the op's defaults have, which tells `stride=[2]` from `stride=[2, 2]`.
    """
    template: list[Any] = [*([None] if chained else []), *op.arguments]
    given: list[Any] = list(node.args)
    if len(template) != len(given) or node.kwargs:
        template = _with_defaults(op.target, template, {})
        given = _with_defaults(op.target, given, node.kwargs)
    pairs: list[tuple[str, Any]] = []
    for expected, value in zip(template, given, strict=True):
        if isinstance(expected, Operand):
            pairs.append((expected.name, value))
        elif isinstance(expected, (list, tuple)) and isinstance(value, (list, tuple)) and len(expected) != len(value):
            return None
    return pairs


def _with_defaults(target: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    schema: list[torch.Argument] = target._schema.arguments
    values: list[Any] = []
    for position, argument in enumerate(schema):
        if argument.name in kwargs:
            values.append(kwargs[argument.name])
        elif not argument.kwarg_only and position < len(args):
            values.append(args[position])
        else:
            values.append(argument.default_value)
    return values
