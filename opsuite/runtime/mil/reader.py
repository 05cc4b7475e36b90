"""Reads the functions, blocks and operations of an ML Program's proto, and checks that names are defined once."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from opsuite.runtime.mil.errors import ProgramError
from opsuite.runtime.mil.program import Block, Function, NamedType, Operation, Program, Type
from opsuite.runtime.mil.values import MAX_DEPTH, OpenWeights, read_type, read_value
from opsuite.runtime.mil.weights import Weights

_MODEL_PATH = "@model_path"


def read_program(spec: Any, weights_dir: Path | None) -> Program:
    """The ML Program of a model.

    Args:
        spec: a `Model` proto.
        weights_dir: the directory with the weight files; None if there are none.

    Raises:
        ProgramError: the model is of another kind, or contradicts itself.
    """
    kind = spec.WhichOneof("Type")
    if kind != "mlProgram":
        raise ProgramError(f"the model is a {kind or 'model without content'}; only ML Programs can be run")
    opened: dict[str, Weights] = {}

    def weights(name: str, where: str) -> Weights:
        if name not in opened:
            opened[name] = Weights(_weight_file(name, where, weights_dir))
        return opened[name]

    functions = {name: _function(name, proto, weights) for name, proto in spec.mlProgram.functions.items()}
    if not functions:
        raise ProgramError("the program has no functions")
    default = spec.description.defaultFunctionName or "main"
    if default not in functions:
        if len(functions) > 1:
            raise ProgramError(f"the program has no function {default!r}; it has {', '.join(sorted(functions))}")
        default = next(iter(functions))
    return Program(functions, default)


def _weight_file(name: str, where: str, weights_dir: Path | None) -> Path:
    path = PurePosixPath(name)
    # The name is data out of a file: it must not lead out of the package.
    if not name.startswith(_MODEL_PATH) or ".." in path.parts:
        raise ProgramError(f"{where}: weight file {name!r} is not inside the model")
    if weights_dir is None:
        raise ProgramError(f"{where}: needs the weight file {path.name!r}, and no directory of weights was given")
    return weights_dir / path.name


def _function(name: str, proto: Any, weights: OpenWeights) -> Function:
    where = f"function {name!r}"
    if proto.opset not in proto.block_specializations:
        raise ProgramError(
            f"{where}: no block for its opset {proto.opset!r}; it has {sorted(proto.block_specializations)}"
        )
    types: dict[str, Type] = {}
    inputs = _named_types(proto.inputs, where)
    _define(types, inputs, where)
    body = _block(proto.block_specializations[proto.opset], where, weights, types, 0)
    return Function(name, proto.opset, inputs, body, types)


def _block(proto: Any, where: str, weights: OpenWeights, types: dict[str, Type], depth: int) -> Block:
    """Reads a block; adds what it defines to `types`."""
    if depth > MAX_DEPTH:
        raise ProgramError(f"{where}: blocks nested deeper than {MAX_DEPTH}")
    inputs = _named_types(proto.inputs, where)
    _define(types, inputs, where)
    operations = tuple(_operation(each, where, weights, types, depth) for each in proto.operations)
    for name in proto.outputs:
        if name not in types:
            raise ProgramError(f"{where}: its output {name!r} is not defined")
    return Block(inputs, tuple(proto.outputs), operations)


def _operation(proto: Any, outer: str, weights: OpenWeights, types: dict[str, Type], depth: int) -> Operation:
    first = proto.outputs[0].name if proto.outputs else ""
    where = f"{outer}, {proto.type} {first!r}"
    if not proto.type:
        raise ProgramError(f"{where}: an operation without a type")
    inputs = {}
    for parameter, argument in proto.inputs.items():
        bindings: list[Any] = []
        for binding in argument.arguments:
            kind = binding.WhichOneof("binding")
            if kind == "value":
                bindings.append(read_value(binding.value, f"{where}, {parameter}", weights))
            elif binding.name in types:
                bindings.append(binding.name)
            else:
                # Operations are in order, so this is a name that is unknown or used before its definition (a cycle).
                raise ProgramError(f"{where}: {parameter} is {binding.name!r}, which is not defined before it")
        if not bindings:
            raise ProgramError(f"{where}: {parameter} has no operands")
        inputs[parameter] = tuple(bindings)
    attributes = {key: read_value(value, f"{where}, {key}", weights) for key, value in proto.attributes.items()}
    blocks = []
    for number, block in enumerate(proto.blocks):
        # What a nested block defines is not seen outside it, but a name that it repeats would hide the outer one.
        inner = dict(types)
        blocks.append(_block(block, f"{where}, block {number}", weights, inner, depth + 1))
    outputs = _named_types(proto.outputs, where)
    _define(types, outputs, where)
    return Operation(proto.type, inputs, outputs, attributes, tuple(blocks))


def _named_types(protos: Any, where: str) -> tuple[NamedType, ...]:
    return tuple(NamedType(each.name, read_type(each.type, f"{where}, {each.name!r}")) for each in protos)


def _define(types: dict[str, Type], named: tuple[NamedType, ...], where: str) -> None:
    for each in named:
        if not each.name:
            raise ProgramError(f"{where}: a value without a name")
        if each.name in types:
            raise ProgramError(f"{where}: {each.name!r} is defined twice")
        types[each.name] = each.type
