"""coremltools' value inference as the oracle of single operations."""

import numpy as np
import pytest
from evaluation import assert_agree
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

FLOATS = st.floats(-100, 100, width=32).map(lambda x: float(np.float32(round(x, 3))))
INTS = st.integers(-50, 50)
few = settings(max_examples=8, deadline=None, database=None, derandomize=True)


def arrays(dtype=np.float32, min_dims=1, max_dims=4, elements=None):
    shapes = hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=1, max_side=4)
    return hnp.arrays(
        dtype, shapes, elements=(FLOATS if dtype == np.float32 else INTS) if elements is None else elements
    )


UNARY = ["abs", "atan", "ceil", "cos", "erf", "exp2", "floor", "round", "sign", "sin", "square", "tanh"]
POSITIVE = ["sqrt", "log", "rsqrt", "inverse"]


@pytest.mark.parametrize("op", UNARY)
@few
@given(x=arrays(elements=st.floats(-8, 8, width=32)))
def test_unary(op, x):
    assert_agree(op, x=x)


@pytest.mark.parametrize("op", POSITIVE)
@few
@given(x=arrays(elements=st.floats(0.125, 64, width=32)))
def test_unary_of_positives(op, x):
    assert_agree(op, x=x)


@few
@given(x=arrays(), dtype=st.sampled_from(["int32", "fp16", "bool"]))
def test_cast(x, dtype):
    assert_agree("cast", x=x, dtype=dtype)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "maximum", "minimum", "less", "greater_equal", "equal"])
@few
@given(data=st.data(), dtype=st.sampled_from([np.float32, np.int32]))
def test_binary(op, data, dtype):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
    elements = FLOATS if dtype == np.float32 else INTS
    x, y = (data.draw(hnp.arrays(dtype, shape, elements=elements)) for shape in shapes.input_shapes)
    assert_agree(op, x=x, y=y)


@pytest.mark.parametrize("op", ["floor_div", "mod"])
@few
@given(x=arrays(np.int32), y=st.integers(-7, 7).filter(bool))
def test_integer_division(op, x, y):
    assert_agree(op, x=x, y=np.int32(y))


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max", "reduce_min", "reduce_mean", "reduce_l1_norm"])
@few
@given(data=st.data(), x=arrays(), keep=st.booleans())
def test_reductions(op, data, x, keep):
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True))
    assert_agree(op, x=x, axes=axes, keep_dims=keep, rtol=1e-4)


@few
@given(data=st.data(), x=arrays(max_dims=3))
def test_slice_by_index(data, x):
    sides = x.shape
    begin = [data.draw(st.integers(0, side - 1)) for side in sides]
    end = [data.draw(st.integers(start + 1, side)) for start, side in zip(begin, sides, strict=True)]
    stride = [data.draw(st.integers(1, 2)) for _ in sides]
    masks = {name: np.array([data.draw(st.booleans()) for _ in sides]) for name in ("begin_mask", "end_mask")}
    squeeze = np.array([data.draw(st.booleans()) for _ in sides[:-1]] + [False])
    assert_agree("slice_by_index", x=x, begin=begin, end=end, stride=stride, squeeze_mask=squeeze, **masks)


@few
@given(data=st.data(), x=arrays(max_dims=3))
def test_gather_and_tile_and_transpose(data, x):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    picks = hnp.array_shapes(min_dims=1, max_dims=2, max_side=3)
    indices = data.draw(hnp.arrays(np.int32, picks, elements=st.integers(0, x.shape[axis] - 1)))
    assert_agree("gather", x=x, indices=indices, axis=axis)
    assert_agree("tile", x=x, reps=[data.draw(st.integers(1, 3)) for _ in x.shape])
    assert_agree("transpose", x=x, perm=data.draw(st.permutations(range(x.ndim))))


@few
@given(data=st.data(), x=arrays(max_dims=3), reverse=st.booleans())
def test_cumsum(data, x, reverse):
    """Value inference of the exclusive form raises TypeError in coremltools 9."""
    axis = data.draw(st.integers(0, x.ndim - 1))
    assert_agree("cumsum", x=x, axis=axis, reverse=reverse, rtol=1e-4)


@few
@given(x=arrays(min_dims=2), lower=st.integers(-1, 3), upper=st.integers(-1, 3))
def test_band_part(x, lower, upper):
    assert_agree("band_part", x=x, lower=lower, upper=upper)


@few
@given(data=st.data(), x=arrays(max_dims=3), mode=st.sampled_from(["constant", "reflect", "replicate"]))
def test_pad(data, x, mode):
    most = [side - 1 if mode == "reflect" else 2 for side in x.shape]
    pad = [data.draw(st.integers(0, side)) for side in most for _ in range(2)]
    if any(pad):
        assert_agree("pad", x=x, pad=pad, mode=mode)


@few
@given(data=st.data(), x=arrays(min_dims=2, max_dims=3), mode=st.sampled_from(["update", "add", "max", "min"]))
def test_scatter_agrees_with_loops(data, x, mode):
    """Value inference does not know scatter; plain loops do."""
    from evaluation import ours

    from opsuite.runtime.mil import dtypes
    from opsuite.runtime.mil.program import TensorType

    rows = data.draw(st.lists(st.integers(0, x.shape[0] - 1), min_size=1, max_size=3))
    updates = data.draw(hnp.arrays(np.float32, (len(rows), *x.shape[1:]), elements=FLOATS))
    want = x.copy()
    for row, update in zip(rows, updates, strict=True):
        combine = {"update": lambda a, b: b, "add": np.add, "max": np.maximum, "min": np.minimum}[mode]
        want[row] = combine(want[row], update)
    types = [TensorType(dtypes.FP32, x.shape)]
    operands = {"data": x, "updates": updates, "mode": mode}
    (got,) = ours("scatter", "CoreML7", types, indices=np.array(rows, np.int32), axis=0, **operands)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    (got,) = ours("scatter_nd", "CoreML7", types, indices=np.array(rows, np.int32)[:, None], **operands)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@few
@given(x=arrays(np.int32), target=st.sampled_from([np.uint8, np.int8]), scale=st.sampled_from([0.25, 0.5, 2.0]))
def test_dequantize(x, target, scale):
    """The definition is a line; value inference refuses to fold it for vectors."""
    from evaluation import ours

    from opsuite.runtime.mil import dtypes
    from opsuite.runtime.mil.program import TensorType

    levels, zero = x.astype(target), target(3)
    types = [TensorType(dtypes.FP32, x.shape)]
    (got,) = ours("dequantize", "CoreML7", types, input=levels, scale=np.float32(scale), zero_point=zero)
    np.testing.assert_array_equal(got, np.float32(scale) * (levels.astype(np.float32) - 3))
    name = np.dtype(target).name
    back = [TensorType(dtypes.by_name(name, ""), x.shape)]
    (again,) = ours("quantize", "CoreML7", back, input=got, scale=np.float32(scale), zero_point=zero, output_dtype=name)
    np.testing.assert_array_equal(again, levels)
