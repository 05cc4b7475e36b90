"""The weight file of an ML Program (MIL blob storage, version 2), memory-mapped.

A header of 64 bytes (number of blobs, version), then, at multiples of 64, records of 64 bytes: a sentinel, the element
type, the size in bytes, the offset of the data, and how many bits at the end are padding.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import numpy as np
import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.dtypes import DType
from opsuite.runtime.mil.errors import ProgramError

ALIGNMENT = 64
_HEADER = struct.Struct("<II")
_RECORD = struct.Struct("<IIQQQ")
_SENTINEL = 0xDEADBEEF
_VERSION = 2

# The numbers of element types in this file are not those of the proto.
_TYPES: dict[int, DType] = {
    1: dtypes.FP16,
    2: dtypes.FP32,
    3: dtypes.UINT8,
    4: dtypes.INT8,
    5: dtypes.BF16,
    6: dtypes.INT16,
    7: dtypes.UINT16,
    8: dtypes.INT4,
    9: dtypes.UINT1,
    10: dtypes.UINT2,
    11: dtypes.UINT4,
    12: dtypes.UINT3,
    13: dtypes.UINT6,
    14: dtypes.INT32,
    15: dtypes.UINT32,
    16: dtypes.FP8E4M3FN,
    17: dtypes.FP8E5M2,
}


class Weights:
    """A weight file, mapped into memory for as long as a tensor of it lives.

    Args:
        path: the file.

    Raises:
        ProgramError: it is not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                if size < ALIGNMENT:
                    raise ProgramError(f"{path}: {size} bytes are no weight file")
                # A private writable mapping: torch wants writable memory, and nothing is ever written to the file.
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except OSError as error:
            raise ProgramError(f"{path}: the weight file cannot be read: {error.strerror}") from error
        self._size = size
        _, version = _HEADER.unpack_from(self._map)
        if version != _VERSION:
            raise ProgramError(f"{path}: weight file version {version}; only {_VERSION} is known")

    def read(self, offset: int, dtype: DType, count: int) -> torch.Tensor:
        """The blob whose record is at `offset`.

        Args:
            offset: in bytes.
            dtype: the declared element type.
            count: the declared number of elements.

        Returns:
            A flat tensor of `dtype.storage`: a view of the mapping, unless elements had to be unpacked.

        Raises:
            ProgramError: the record is damaged, out of the file or contradicts the declaration.
        """
        where = f"{self.path.name} at offset {offset}"
        if offset % ALIGNMENT or offset < ALIGNMENT or offset + _RECORD.size > self._size:
            raise ProgramError(f"{where}: no record can be there in a file of {self._size} bytes")
        sentinel, code, size, start, padding = _RECORD.unpack_from(self._map, offset)
        if sentinel != _SENTINEL:
            raise ProgramError(f"{where}: no weight record (sentinel {sentinel:#x})")
        if code not in _TYPES:
            raise ProgramError(f"{where}: unknown weight type {code}")
        stored = _TYPES[code]
        # Booleans are written as bytes.
        if stored is not dtype and not (dtype is dtypes.BOOL and stored.bits == 8 and stored.kind == "int"):
            raise ProgramError(f"{where}: holds {stored}, the program declares {dtype}")
        if start % ALIGNMENT or start + size > self._size:
            raise ProgramError(f"{where}: data at {start} of {size} bytes, the file has {self._size}")
        wanted = (count * dtype.bits + 7) // 8
        # The writer pads to whole bytes and notes by how many bits; both together give the number of elements.
        if size < wanted or (size * 8 - padding) // dtype.bits != count:
            raise ProgramError(f"{where}: {size} bytes for {count} elements of {dtype}")
        return decode(memoryview(self._map)[start : start + size], dtype, count)


def decode(raw: memoryview | bytes | bytearray, dtype: DType, count: int) -> torch.Tensor:
    """The elements in little-endian bytes, sub-byte ones unpacked from the low bits up.

    Args:
        raw: at least `count * dtype.bits` bits, which the caller has checked.
        dtype: the element type.
        count: the number of elements.

    Returns:
        A flat tensor of `dtype.storage` with `count` elements.
    """
    if count == 0:
        return torch.empty(0, dtype=dtype.storage)
    if dtype.bits < 8:
        return _unpack(np.frombuffer(raw, np.uint8), dtype, count)
    if isinstance(raw, bytes):
        raw = bytearray(raw)
    if dtype is dtypes.BOOL:
        return torch.frombuffer(raw, dtype=torch.uint8, count=count) != 0
    return torch.frombuffer(raw, dtype=dtype.storage, count=count)


def _unpack(raw: np.ndarray, dtype: DType, count: int) -> torch.Tensor:
    bits = np.unpackbits(raw, count=count * dtype.bits, bitorder="little").reshape(count, dtype.bits)
    values = (bits << np.arange(dtype.bits, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)
    if dtype.signed:
        values = ((values.astype(np.int16) ^ (1 << (dtype.bits - 1))) - (1 << (dtype.bits - 1))).astype(np.int8)
    return torch.from_numpy(values)
