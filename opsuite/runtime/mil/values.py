"""Reads types and constants of the proto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.dtypes import DType
from opsuite.runtime.mil.errors import ProgramError
from opsuite.runtime.mil.program import Constant, DictType, ListType, Plain, StateType, TensorType, TupleType, Type
from opsuite.runtime.mil.weights import Weights, decode

MAX_ELEMENTS = 1 << 40
"""No tensor has more elements than this: a larger declared size is an error before anything is allocated."""
MAX_DEPTH = 32
"""How deep types, values and blocks may nest."""

OpenWeights = Callable[[str, str], Weights]
"""Opens the weight file of a `fileName`; the second argument is where it is used."""


def read_type(proto: Any, where: str, depth: int = 0) -> Type:
    """A `ValueType`. Raises ProgramError for a type that is absent, unknown, too large or nested too deeply."""
    if depth > MAX_DEPTH:
        raise ProgramError(f"{where}: types nested deeper than {MAX_DEPTH}")
    kind = proto.WhichOneof("type")
    if kind == "tensorType":
        return _tensor_type(proto.tensorType, where)
    if kind == "listType":
        length = proto.listType.length
        size = length.constant.size if length.WhichOneof("dimension") == "constant" else None
        return ListType(read_type(proto.listType.type, where, depth + 1), size)
    if kind == "tupleType":
        return TupleType(tuple(read_type(each, where, depth + 1) for each in proto.tupleType.types))
    if kind == "dictionaryType":
        entry = proto.dictionaryType
        return DictType(read_type(entry.keyType, where, depth + 1), read_type(entry.valueType, where, depth + 1))
    if kind == "stateType":
        wrapped = read_type(proto.stateType.wrappedType, where, depth + 1)
        if not isinstance(wrapped, TensorType):
            raise ProgramError(f"{where}: a state of {wrapped}; only tensors can be states")
        return StateType(wrapped)
    raise ProgramError(f"{where}: has no type")


def _tensor_type(proto: Any, where: str) -> TensorType:
    dtype = dtypes.by_code(proto.dataType, where)
    sizes: list[int | None] = []
    for dimension in proto.dimensions:
        kind = dimension.WhichOneof("dimension")
        if kind == "unknown" and dimension.unknown.variadic:
            return TensorType(dtype, None)
        # A dimension of size 0 can be written without its content.
        sizes.append(None if kind == "unknown" else int(dimension.constant.size))
    if proto.rank < 0:
        return TensorType(dtype, None)
    if proto.rank != len(sizes):
        raise ProgramError(f"{where}: rank {proto.rank} with {len(sizes)} dimensions")
    product = 1
    for size in sizes:
        product *= size or 1
        if product > MAX_ELEMENTS:
            raise ProgramError(f"{where}: more than {MAX_ELEMENTS} elements: {TensorType(dtype, tuple(sizes))}")
    return TensorType(dtype, tuple(sizes))


def read_value(proto: Any, where: str, weights: OpenWeights, depth: int = 0) -> Constant:
    """A `Value`: its immediate decoded at once, its place in the weight file checked at once but read when needed.

    Raises:
        ProgramError: it contradicts its own type, or lies outside the weight file.
    """
    if depth > MAX_DEPTH:
        raise ProgramError(f"{where}: values nested deeper than {MAX_DEPTH}")
    type_ = read_type(proto.type, where)
    kind = proto.WhichOneof("value")
    if kind == "blobFileValue":
        return _blob(proto.blobFileValue, type_, where, weights)
    if kind != "immediateValue":
        raise ProgramError(f"{where}: has no value")
    value = _immediate(proto.immediateValue, type_, where, weights, depth)
    return Constant(type_, lambda: value)


def _blob(proto: Any, type_: Type, where: str, weights: OpenWeights) -> Constant:
    if not isinstance(type_, TensorType) or type_.is_text or type_.count is None:
        raise ProgramError(f"{where}: a weight of type {type_}; only tensors of a known shape can be in the file")
    file, offset, count, shape = weights(proto.fileName, where), int(proto.offset), type_.count, type_.shape
    dtype = type_.dtype

    def read() -> torch.Tensor:
        try:
            return file.read(offset, dtype, count).reshape(shape)
        except ProgramError as error:
            raise ProgramError(f"{where}: {error}") from error

    if dtype.bits >= 8:
        read()
    return Constant(type_, read, in_file=True)


def _immediate(proto: Any, type_: Type, where: str, weights: OpenWeights, depth: int) -> Plain:
    kind = proto.WhichOneof("value")
    if isinstance(type_, TensorType) and kind == "tensor":
        return _tensor(proto.tensor, type_, where)
    if isinstance(type_, TupleType) and kind == "tuple":
        items = [read_value(each, where, weights, depth + 1) for each in proto.tuple.values]
        return tuple(each.read() for each in items)
    if isinstance(type_, ListType) and kind == "list":
        return [read_value(each, where, weights, depth + 1).read() for each in proto.list.values]
    if isinstance(type_, DictType) and kind == "dictionary":
        return {
            read_value(pair.key, where, weights, depth + 1).read(): read_value(
                pair.value, where, weights, depth + 1
            ).read()
            for pair in proto.dictionary.values
        }
    raise ProgramError(f"{where}: declared {type_}, but written as {kind}")


# How immediates of each type may be written. Where two are given, the second is what older writers used.
_FIELDS: dict[str, tuple[str, ...]] = {
    "bool": ("bools",),
    "string": ("strings",),
    "fp32": ("floats", "bytes"),
    "fp64": ("doubles", "bytes"),
    "int32": ("ints", "bytes"),
    "uint32": ("bytes", "ints", "longInts"),
    "int64": ("longInts", "bytes", "ints"),
    "uint64": ("longInts", "bytes"),
    "int16": ("bytes", "ints"),
    "uint16": ("bytes", "ints"),
}


def _tensor(proto: Any, type_: TensorType, where: str) -> Plain:
    dtype, count = type_.dtype, type_.count
    if count is None:
        raise ProgramError(f"{where}: a constant of type {type_}, whose shape is unknown")
    kind = proto.WhichOneof("value")
    if kind is None and count == 0:
        return [] if type_.is_text else torch.empty(_known(type_), dtype=dtype.storage)
    if kind not in _FIELDS.get(dtype.name, ("bytes",)):
        raise ProgramError(f"{where}: declared {type_}, but written as {kind}")
    values = getattr(proto, kind).values
    if kind == "bytes":
        return _from_bytes(values, dtype, count, where).reshape(_known(type_))
    if len(values) != count:
        # One element stands for a scalar whatever else; anything else is a contradiction.
        raise ProgramError(f"{where}: {len(values)} elements written, {type_} has {count}")
    if kind == "strings":
        return str(values[0]) if type_.shape == () else [str(each) for each in values]
    low, high = dtype.limits if dtype.kind == "int" else (0, 0)
    if dtype.kind == "int" and any(not low <= each <= high for each in values):
        raise ProgramError(f"{where}: a value outside {dtype}'s range")
    return torch.tensor(list(values), dtype=dtype.storage).reshape(_known(type_))


def _from_bytes(raw: bytes, dtype: DType, count: int, where: str) -> torch.Tensor:
    wanted = (count * dtype.bits + 7) // 8
    if len(raw) != wanted:
        raise ProgramError(f"{where}: {len(raw)} bytes for {count} elements of {dtype}, which take {wanted}")
    return decode(raw, dtype, count)


def _known(type_: TensorType) -> list[int]:
    return [size or 0 for size in type_.shape or ()]
