"""What is wrong with a program or its inputs is one clear error."""

import numpy as np
import pytest
import torch
from conversion import convert
from hypothesis import given, settings
from hypothesis import strategies as st

from opsuite.exits import OpsuiteError
from opsuite.runtime import mil
from opsuite.runtime.mil.registry import lookup, op


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 600)

    def forward(self, x, y):
        return self.linear(x).sum() + y


@pytest.fixture(scope="module")
def converted():
    return convert(Sum(), (torch.ones(2, 3), torch.ones(2, dtype=torch.int32)))


@pytest.fixture(scope="module")
def model(converted):
    return mil.load(converted)


GOOD = {"x0": np.ones((2, 3), np.float32), "x1": np.ones(2, np.int32)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x1": None}, "missing input: x1"),
        ({"x2": 1}, "unknown input 'x2'; known: x0, x1"),
        ({"x0": np.ones((3, 2), np.float32)}, r"input 'x0': shape \[3, 2\], where fp32\[2, 3\] is declared"),
        ({"x0": "text"}, "input 'x0'"),
        ({"x0": np.ones((2, 3), np.complex64)}, "complex"),
        ({"x1": np.array([0.5, 1.0])}, "input 'x1': fractions"),
        ({"x1": np.array([1, 1 << 40])}, "outside int32's range"),
    ],
)
def test_inputs(model, change, message):
    inputs = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(mil.InputError, match=message):
        model.predict(inputs)


def test_nan_goes_through(model):
    (got,) = model.predict({**GOOD, "x0": np.full((2, 3), np.nan, np.float32)}).values()
    assert np.isnan(got).all()


def test_unknown_function_and_precision(model, converted):
    with pytest.raises(mil.InputError, match="unknown function 'man'; did you mean 'main'"):
        model.predict(GOOD, function="man")
    with pytest.raises(mil.InputError, match="precision 'half'"):
        mil.load(converted, precision="half")


def test_sources_that_are_no_programs(tmp_path):
    import coremltools as ct

    spec = ct.proto.Model_pb2.Model()
    spec.neuralNetwork.SetInParent()
    for source, message in [
        (spec, "neuralNetwork; only ML Programs"),
        (b"\xff\xff", "no model"),
        (b"", "without content"),
        (3, "a int is no model"),
        (tmp_path, "no model package"),
        (tmp_path / "none.mlmodel", "cannot be read"),
    ]:
        with pytest.raises(mil.ProgramError, match=message):
            mil.load(source)


def _operation(spec, kind):
    main = spec.mlProgram.functions["main"]
    return next(each for each in main.block_specializations[main.opset].operations if each.type == kind)


def _unknown_op(spec):
    _operation(spec, "linear").type = "linaer"


def _unknown_opset(spec):
    main = spec.mlProgram.functions["main"]
    main.block_specializations["CoreML99"].CopyFrom(main.block_specializations[main.opset])
    main.opset = "CoreML99"


def _undefined(spec):
    _operation(spec, "linear").inputs["x"].arguments[0].name = "nothing"


def _cycle(spec):
    found = _operation(spec, "linear")
    found.inputs["x"].arguments[0].name = found.outputs[0].name


def _twice(spec):
    _operation(spec, "linear").outputs[0].name = "x0"


def _dtype(spec):
    _operation(spec, "linear").outputs[0].type.tensorType.dataType = 99


def _huge(spec):
    _operation(spec, "linear").outputs[0].type.tensorType.dimensions[0].constant.size = 1 << 62


def _rank(spec):
    _operation(spec, "linear").outputs[0].type.tensorType.rank = 5


def _lacks(spec):
    del _operation(spec, "linear").inputs["weight"]


def _extra(spec):
    found = _operation(spec, "linear")
    found.inputs["wieght"].CopyFrom(found.inputs["weight"])


def _escape(spec):
    for each in spec.mlProgram.functions["main"].block_specializations["CoreML7"].operations:
        if each.attributes["val"].WhichOneof("value") == "blobFileValue":
            each.attributes["val"].blobFileValue.fileName = "@model_path/../../etc/passwd"


def _offset(spec):
    for each in spec.mlProgram.functions["main"].block_specializations["CoreML7"].operations:
        if each.attributes["val"].WhichOneof("value") == "blobFileValue":
            each.attributes["val"].blobFileValue.offset += 64


def _output(spec):
    spec.mlProgram.functions["main"].block_specializations["CoreML7"].outputs[0] = "nothing"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_unknown_op, "'linaer' is not implemented for opset CoreML7.*did you mean 'linear'"),
        (_unknown_opset, "unknown opset 'CoreML99'"),
        (_undefined, "'nothing', which is not defined before it"),
        (_cycle, "not defined before it"),
        (_twice, "'x0' is defined twice"),
        (_dtype, "unknown data type 99"),
        (_huge, "more than .* elements"),
        (_rank, "rank 5 with 2 dimensions"),
        (_lacks, "lacks its operand 'weight'"),
        (_extra, "no operand 'wieght'"),
        (_escape, "is not inside the model"),
        (_offset, "no weight record"),
        (_output, "output 'nothing' is not defined"),
    ],
)
def test_damaged_programs(converted, damage, message):
    import coremltools as ct

    spec = ct.proto.Model_pb2.Model()
    spec.CopyFrom(converted.get_spec())
    damage(spec)
    with pytest.raises(mil.ProgramError, match=message) as error:
        mil.load(spec, weights_dir=converted.weights_dir).predict(GOOD)
    assert "\n" not in str(error.value)


def test_shapes_and_kinds_that_lie(converted):
    import coremltools as ct

    spec = ct.proto.Model_pb2.Model()
    spec.CopyFrom(converted.get_spec())
    _operation(spec, "linear").outputs[0].type.tensorType.dimensions[0].constant.size = 7
    with pytest.raises(mil.OpError, match=r"linear '.*': declared fp16\[7, 600\], computed shape \[2, 600\]"):
        mil.load(spec, weights_dir=converted.weights_dir).predict(GOOD)
    spec.CopyFrom(converted.get_spec())
    _operation(spec, "linear").outputs[0].type.tensorType.dataType = 23
    with pytest.raises(mil.OpError, match=r"declared int32, computed torch\.float32"):
        mil.load(spec, weights_dir=converted.weights_dir).predict(GOOD)


@settings(max_examples=30, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_damaged_bytes_are_errors_or_values(converted, data):
    content = bytearray(converted.get_spec().SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        mil.load(bytes(content), weights_dir=converted.weights_dir).predict(GOOD, report=mil.Report())
    except OpsuiteError as error:
        assert str(error)


def test_an_op_is_registered_once():
    with pytest.raises(ValueError, match="'add' of CoreML5 is registered twice"):
        op("add")(lambda: None)
    with pytest.raises(mil.UnknownOpError, match="here: op 'quantize' is not implemented for opset CoreML5: it is in"):
        lookup("quantize", "CoreML5", "here")
