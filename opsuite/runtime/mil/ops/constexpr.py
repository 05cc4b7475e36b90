"""Compressed constants.

Up to iOS17 their operands are attributes with packed bits, from iOS18 on they are operands of sub-byte types.
"""

from __future__ import annotations

import math

import torch

from opsuite.runtime.mil import dtypes
from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.quantization import along
from opsuite.runtime.mil.registry import Ints, Tensor, op, since
from opsuite.runtime.mil.weights import decode

_OLD, _NEW = ("CoreML6", "CoreML7"), since("CoreML8")
_PACKED = {1: dtypes.UINT1, 2: dtypes.UINT2, 4: dtypes.UINT4, 6: dtypes.UINT6, 8: dtypes.UINT8}


@op("constexpr_affine_dequantize", opsets=since("CoreML6"))
def constexpr_affine_dequantize(quantized_data: Tensor, zero_point: Tensor, scale: Tensor, axis: int) -> Tensor:
    """`scale * (quantized_data - zero_point)`."""
    shifted = quantized_data.float() - along(zero_point, quantized_data, axis, "zero_point")
    return along(scale, quantized_data, axis, "scale") * shifted


@op("constexpr_cast", opsets=since("CoreML6"))
def constexpr_cast(source_val: Tensor, output_dtype: str) -> Tensor:
    return source_val.to(dtypes.by_name(output_dtype, "output_dtype").carrier)


@op("constexpr_lut_to_dense", opsets=_OLD)
def packed_lut_to_dense(indices: Tensor, lut: Tensor, shape: Ints) -> Tensor:
    """`indices` holds bytes of packed indices, of as many bits as the table needs."""
    bits = int(math.log2(max(1, len(lut))))
    if bits not in _PACKED or len(lut) != 1 << bits:
        raise OpError(f"lut: {len(lut)} entries; 2, 4, 16, 64 or 256 are wanted")
    return lut[_unpacked(indices, bits, shape).long()]


@op("constexpr_sparse_to_dense", opsets=_OLD)
def packed_sparse_to_dense(nonzero_data: Tensor, mask: Tensor, shape: Ints) -> Tensor:
    """`mask` has a bit for each element."""
    return sparse_to_dense(nonzero_data, _unpacked(mask, 1, shape))


def _unpacked(packed: Tensor, bits: int, shape: Ints) -> Tensor:
    count = math.prod(shape)
    if packed.dim() != 1 or min(shape, default=0) < 0 or len(packed) != (count * bits + 7) // 8:
        raise OpError(f"{list(packed.shape)} bytes for {count} elements of {bits} bits")
    return decode(memoryview(packed.contiguous().numpy()), _PACKED[bits], count).reshape(shape)


@op("constexpr_lut_to_dense", opsets=_NEW)
def lut_to_dense(indices: Tensor, lut: Tensor, vector_axis: int | None = None) -> Tensor:
    """`lut` (*groups, entries, vector): one table for each block of `indices`, vectors laid along `vector_axis`."""
    rank = indices.dim()
    if lut.dim() != rank + 2:
        raise OpError(f"lut: rank {rank + 2} is wanted, not {lut.dim()}")
    _check_blocks(indices, lut.shape[:rank], "lut")
    if indices.numel() and int(indices.max()) >= lut.shape[-2]:
        raise OpError(f"an index of {int(indices.max())} into a table of {lut.shape[-2]} entries")
    groups = []
    for axis, size in enumerate(indices.shape):
        group = torch.arange(size) // (size // lut.shape[axis] if size else 1)
        groups.append(group.reshape([-1 if axis == each else 1 for each in range(rank)]))
    values = lut[(*groups, indices.long())]
    if lut.shape[-1] == 1:
        return values.squeeze(-1)
    axis = _vector_axis(vector_axis, rank)
    shape = list(indices.shape)
    shape[axis] *= lut.shape[-1]
    return values.movedim(-1, axis + 1).reshape(shape)


@op("constexpr_sparse_to_dense", opsets=_NEW)
def sparse_to_dense(nonzero_data: Tensor, mask: Tensor) -> Tensor:
    where = mask != 0
    if int(where.sum()) != nonzero_data.numel():
        raise OpError(f"the mask has {int(where.sum())} elements set, and {nonzero_data.numel()} are given")
    dense = torch.zeros(mask.shape, dtype=nonzero_data.dtype)
    dense[where] = nonzero_data
    return dense


@op("constexpr_blockwise_shift_scale", opsets=_NEW)
def blockwise_shift_scale(data: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    """`scale * (data - offset)`, each element of those repeated over its block."""
    factors, values = _over_blocks(scale, data, "scale"), data.float()
    if offset is not None:
        values = values - _over_blocks(offset, data, "offset")
    return values * factors


@op("constexpr_lut_to_sparse", opsets=_NEW)
def lut_to_sparse(
    indices_mask: Tensor, indices_nonzero_data: Tensor, lut: Tensor, vector_axis: int | None = None
) -> tuple[Tensor, Tensor]:
    dense = lut_to_dense(sparse_to_dense(indices_nonzero_data, indices_mask), lut, vector_axis)
    mask = indices_mask
    if lut.shape[-1] > 1:
        mask = mask.repeat_interleave(lut.shape[-1], _vector_axis(vector_axis, mask.dim()))
    return mask, dense[mask != 0]


@op("constexpr_sparse_blockwise_shift_scale", opsets=_NEW)
def sparse_blockwise_shift_scale(
    data_mask: Tensor, nonzero_data: Tensor, scale: Tensor, offset: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    dense = blockwise_shift_scale(sparse_to_dense(nonzero_data, data_mask), scale, offset)
    return data_mask, dense[data_mask != 0]


def _vector_axis(axis: int | None, rank: int) -> int:
    if axis is None or not -rank <= axis < rank:
        raise OpError(f"vector_axis: an axis of {rank} dimensions is wanted, not {axis}")
    return axis % rank


def _check_blocks(data: Tensor, groups: torch.Size, name: str) -> None:
    if any(count < 1 or size % count for size, count in zip(data.shape, groups, strict=True)):
        raise OpError(f"{name}: {list(groups)} blocks do not divide {list(data.shape)}")


def _over_blocks(values: Tensor, data: Tensor, name: str) -> Tensor:
    if values.dim() != data.dim():
        raise OpError(f"{name}: rank {data.dim()} is wanted, not {values.dim()}")
    _check_blocks(data, values.shape, name)
    for axis, (size, count) in enumerate(zip(data.shape, values.shape, strict=True)):
        # One block broadcasts by itself.
        if count > 1:
            values = values.repeat_interleave(size // count, axis)
    return values
