"""The weight file, against coremltools' writer, and damaged."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsuite.runtime.mil import ProgramError, dtypes
from opsuite.runtime.mil.weights import Weights

WRITERS = {
    "fp16": ("write_fp16_data", np.arange(9, dtype=np.float16).view(np.uint16), dtypes.FP16),
    "fp32": ("write_float_data", np.linspace(-1, 1, 9, dtype=np.float32), dtypes.FP32),
    "int8": ("write_int8_data", np.arange(-4, 5, dtype=np.int8), dtypes.INT8),
    "uint8": ("write_uint8_data", np.arange(9, dtype=np.uint8), dtypes.UINT8),
    "int16": ("write_int16_data", np.arange(-4, 5, dtype=np.int16), dtypes.INT16),
    "uint16": ("write_uint16_data", np.arange(9, dtype=np.uint16) * 7000, dtypes.UINT16),
    "int32": ("write_int32_data", np.arange(-4, 5, dtype=np.int32), dtypes.INT32),
    "uint32": ("write_uint32_data", np.arange(9, dtype=np.uint32), dtypes.UINT32),
    "int4": ("write_int4_data", np.arange(-4, 5, dtype=np.int8), dtypes.INT4),
    "uint1": ("write_uint1_data", np.arange(9, dtype=np.uint8) % 2, dtypes.UINT1),
    "uint2": ("write_uint2_data", np.arange(9, dtype=np.uint8) % 4, dtypes.UINT2),
    "uint3": ("write_uint3_data", np.arange(9, dtype=np.uint8) % 8, dtypes.UINT3),
    "uint4": ("write_uint4_data", np.arange(9, dtype=np.uint8), dtypes.UINT4),
    "uint6": ("write_uint6_data", np.arange(9, dtype=np.uint8) * 7, dtypes.UINT6),
}


def written(path, kind):
    from coremltools.libmilstoragepython import _BlobStorageWriter

    method, values, dtype = WRITERS[kind]
    writer = _BlobStorageWriter(str(path), True)
    writer.write_uint8_data(np.arange(5, dtype=np.uint8))
    offset = getattr(writer, method)(values)
    del writer
    return offset, values, dtype


@pytest.mark.parametrize("kind", WRITERS)
def test_reads_what_coremltools_writes(kind, tmp_path):
    offset, values, dtype = written(tmp_path / "weight.bin", kind)
    got = Weights(tmp_path / "weight.bin").read(offset, dtype, len(values)).numpy()
    np.testing.assert_array_equal(got.view(np.uint16) if kind == "fp16" else got, values)


@pytest.mark.parametrize(
    ("count", "dtype", "offset", "message"),
    [
        (9, dtypes.FP16, None, "declares fp16"),
        (10, dtypes.FP32, None, "36 bytes for 10 elements"),
        (1 << 60, dtypes.FP32, None, "bytes for"),
        (9, dtypes.FP32, 65, "no record can be there"),
        (9, dtypes.FP32, 1 << 40, "no record can be there"),
        (9, dtypes.FP32, 0, "no record can be there"),
    ],
)
def test_contradictions(count, dtype, offset, message, tmp_path):
    found, _, _ = written(tmp_path / "weight.bin", "fp32")
    with pytest.raises(ProgramError, match=message):
        Weights(tmp_path / "weight.bin").read(found if offset is None else offset, dtype, count)


def test_no_weight_file(tmp_path):
    with pytest.raises(ProgramError, match="cannot be read"):
        Weights(tmp_path / "none.bin")
    (tmp_path / "short.bin").write_bytes(b"\1\0")
    with pytest.raises(ProgramError, match="no weight file"):
        Weights(tmp_path / "short.bin")
    (tmp_path / "old.bin").write_bytes(struct.pack("<II", 1, 1) + bytes(56))
    with pytest.raises(ProgramError, match="version 1"):
        Weights(tmp_path / "old.bin")


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(place=st.integers(0, 400), value=st.integers(0, 255), cut=st.integers(0, 600))
def test_damaged_files_are_errors_or_values(place, value, cut, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "weight.bin"
    offset, _, dtype = written(path, "fp32")
    content = bytearray(path.read_bytes())
    content[place % len(content)] = value
    path.write_bytes(bytes(content[: len(content) - cut % len(content)]))
    with contextlib.suppress(ProgramError):
        assert Weights(path).read(offset, dtype, 9).shape == (9,)
