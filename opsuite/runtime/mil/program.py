"""What an ML Program says, as small dataclasses: `reader.py` makes them from the proto."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.dtypes import DType


@dataclass(frozen=True)
class TensorType:
    """`shape` has None where a dimension is unknown; it is None where the rank is."""

    dtype: DType
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[*]"
        return f"{self.dtype}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"

    @property
    def is_text(self) -> bool:
        return self.dtype is dtypes.STRING

    def admits(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of that shape is of this type."""
        return self.shape is None or (
            len(shape) == len(self.shape)
            and all(want is None or want == got for want, got in zip(self.shape, shape, strict=True))
        )

    @property
    def count(self) -> int | None:
        """The number of elements; None where it is unknown."""
        if self.shape is None:
            return None
        sizes = [size for size in self.shape if size is not None]
        return math.prod(sizes) if len(sizes) == len(self.shape) else None


@dataclass(frozen=True)
class ListType:
    """`length` is None where it is unknown."""

    element: Type
    length: int | None

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True)
class TupleType:
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True)
class DictType:
    key: Type
    value: Type

    def __str__(self) -> str:
        return f"dict<{self.key}, {self.value}>"


@dataclass(frozen=True)
class StateType:
    wrapped: TensorType

    def __str__(self) -> str:
        return f"state<{self.wrapped}>"


Type = TensorType | ListType | TupleType | DictType | StateType

Plain: TypeAlias = Any
"""A constant: a tensor of its storage type, text, lists and tuples of those."""


@dataclass(frozen=True)
class Constant:
    """A value written in the program. `read` decodes it: at once for an immediate, from the file for a blob."""

    type: Type
    read: Callable[[], Plain]
    in_file: bool = False


@dataclass(frozen=True)
class NamedType:
    name: str
    type: Type


Binding = str | Constant
"""An operand: the name of a value, or a constant in place."""


@dataclass(frozen=True)
class Operation:
    """One operation. `inputs` has the operands of each parameter: several where the parameter is variadic."""

    type: str
    inputs: dict[str, tuple[Binding, ...]]
    outputs: tuple[NamedType, ...]
    attributes: dict[str, Constant]
    blocks: tuple[Block, ...] = ()

    @property
    def label(self) -> str:
        """How errors and traces call it: the op and the name of its first output."""
        return f"{self.type} {self.outputs[0].name!r}" if self.outputs else self.type


@dataclass(frozen=True)
class Block:
    inputs: tuple[NamedType, ...]
    outputs: tuple[str, ...]
    operations: tuple[Operation, ...]

    def walk(self) -> Iterator[Operation]:
        """All operations, those of nested blocks after the one that holds them."""
        for operation in self.operations:
            yield operation
            for block in operation.blocks:
                yield from block.walk()


@dataclass(frozen=True)
class Function:
    """A function of a program: its body is the block specialization of its opset."""

    name: str
    opset: str
    inputs: tuple[NamedType, ...]
    body: Block
    types: dict[str, Type] = field(repr=False, default_factory=dict)

    @property
    def outputs(self) -> tuple[NamedType, ...]:
        return tuple(NamedType(name, self.types[name]) for name in self.body.outputs)


@dataclass(frozen=True)
class Program:
    functions: dict[str, Function]
    default: str
