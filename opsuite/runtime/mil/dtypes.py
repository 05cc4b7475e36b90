"""The element types of ML Programs, and the torch types that carry their values while a program runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from opsuite.runtime.mil.errors import ProgramError

Kind = Literal["bool", "int", "float", "string"]


@dataclass(frozen=True)
class DType:
    """An element type.

    Attributes:
        name: Core ML's name, as `fp16`.
        code: its number in the proto.
        kind: bool, int, float or string.
        bits: the size of an element in storage; below 8 several share a byte.
        storage: the torch type of the stored elements; sub-byte integers are unpacked into it.
        carrier: the torch type that holds values between operations. Floats up to 32 bits are carried as float32 and
            rounded to their own precision by the interpreter; torch computes little in unsigned types.
        signed: whether an integer type has a sign.
    """

    name: str
    code: int
    kind: Kind
    bits: int
    storage: torch.dtype
    carrier: torch.dtype
    signed: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


_f32, _i64 = torch.float32, torch.int64

BOOL = DType("bool", 1, "bool", 8, torch.bool, torch.bool)
STRING = DType("string", 2, "string", 0, torch.uint8, torch.uint8)
FP16 = DType("fp16", 10, "float", 16, torch.float16, _f32)
FP32 = DType("fp32", 11, "float", 32, _f32, _f32)
FP64 = DType("fp64", 12, "float", 64, torch.float64, torch.float64)
BF16 = DType("bf16", 13, "float", 16, torch.bfloat16, _f32)
FP8E4M3FN = DType("fp8e4m3fn", 40, "float", 8, torch.float8_e4m3fn, _f32)
FP8E5M2 = DType("fp8e5m2", 41, "float", 8, torch.float8_e5m2, _f32)
INT4 = DType("int4", 25, "int", 4, torch.int8, torch.int8)
INT8 = DType("int8", 21, "int", 8, torch.int8, torch.int8)
INT16 = DType("int16", 22, "int", 16, torch.int16, torch.int16)
INT32 = DType("int32", 23, "int", 32, torch.int32, torch.int32)
INT64 = DType("int64", 24, "int", 64, _i64, _i64)
UINT1 = DType("uint1", 37, "int", 1, torch.uint8, torch.uint8, signed=False)
UINT2 = DType("uint2", 36, "int", 2, torch.uint8, torch.uint8, signed=False)
UINT3 = DType("uint3", 39, "int", 3, torch.uint8, torch.uint8, signed=False)
UINT4 = DType("uint4", 35, "int", 4, torch.uint8, torch.uint8, signed=False)
UINT6 = DType("uint6", 38, "int", 6, torch.uint8, torch.uint8, signed=False)
UINT8 = DType("uint8", 31, "int", 8, torch.uint8, torch.uint8, signed=False)
UINT16 = DType("uint16", 32, "int", 16, torch.uint16, torch.int32, signed=False)
UINT32 = DType("uint32", 33, "int", 32, torch.uint32, _i64, signed=False)
UINT64 = DType("uint64", 34, "int", 64, torch.uint64, _i64, signed=False)

_FLOATS = (FP16, FP32, FP64, BF16, FP8E4M3FN, FP8E5M2)
_SIGNED = (INT4, INT8, INT16, INT32, INT64)
_UNSIGNED = (UINT1, UINT2, UINT3, UINT4, UINT6, UINT8, UINT16, UINT32, UINT64)
ALL = (BOOL, STRING, *_FLOATS, *_SIGNED, *_UNSIGNED)
_BY_CODE = {dtype.code: dtype for dtype in ALL}
_BY_NAME = {dtype.name: dtype for dtype in ALL}


def by_code(code: int, where: str) -> DType:
    """The type of a number of the proto. Raises ProgramError for one that Core ML does not have."""
    if code not in _BY_CODE:
        raise ProgramError(f"{where}: unknown data type {code}")
    return _BY_CODE[code]


def by_name(name: str, where: str) -> DType:
    """The type of a name as the `dtype` of a cast has it. Raises ProgramError."""
    if name not in _BY_NAME:
        raise ProgramError(f"{where}: unknown data type {name!r}")
    return _BY_NAME[name]
