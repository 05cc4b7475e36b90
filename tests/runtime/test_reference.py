"""Whole executorch programs with Core ML delegates, against torch."""

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from torch import nn

from opsuite.cases import function_module
from opsuite.runtime import native, reference


def lowered(modules, inputs, target="iOS17", skip=()):
    """The bytes of a program of that module, or of a dictionary of methods with their inputs."""
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    specs = CoreMLBackend.generate_compile_specs(
        minimum_deployment_target=ct.target[target], compute_precision=ct.precision.FLOAT32
    )
    partitioner = CoreMLPartitioner(
        compile_specs=specs, skip_ops_for_coreml_delegation=list(skip), take_over_mutable_buffer=False
    )
    if isinstance(modules, dict):
        exported = {name: torch.export.export(each, inputs[name]) for name, each in modules.items()}
    else:
        exported = torch.export.export(modules, inputs)
    return to_edge_transform_and_lower(exported, partitioner=[partitioner]).to_executorch().buffer


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x, offset):
        y = torch.relu(self.conv(x)).mean((2, 3))
        return y + offset, torch.argmax(y, 1), y.sum()


def test_outputs_have_the_planned_types_and_shapes():
    """An int64 and a rank-0 output, which the delegate gives as int32 and as (1,)."""
    torch.manual_seed(0)
    model, inputs = Net().eval(), (torch.randn(2, 3, 8, 8), torch.tensor(3))
    torch.testing.assert_close(reference.execute(lowered(model, inputs), inputs), list(model(*inputs)))


def test_portable_kernels_between_two_delegates():
    function = function_module(lambda x: torch.cos(torch.exp(x) * 2).cumsum(1) + 1)
    x = torch.randn(2, 5)
    pte = lowered(function, (x,), skip=["aten.cos.default"])
    (got,) = reference.execute(pte, (x,))
    torch.testing.assert_close(got, function(x), rtol=1e-5, atol=1e-5)


def test_a_program_without_delegates():
    function = function_module(lambda pair, c: (pair[0] - pair[1], torch.cat([c, c]).sum(0)))
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    pte = to_edge_transform_and_lower(torch.export.export(function, ((a, b), a))).to_executorch().buffer
    torch.testing.assert_close(reference.execute(pte, ((a, b), a)), list(function((a, b), a)))


def test_precision_is_that_of_the_interpreter():
    x = torch.full((3,), 1.0)
    pte = lowered(function_module(lambda x: torch.sqrt(x) * 3), (x,))
    assert reference.execute(pte, (x,), precision="fp32")[0].tolist() == [3.0] * 3


def test_wrong_calls_are_one_error_each():
    x = torch.randn(2, 3)
    pte = lowered(function_module(torch.exp), (x,))
    with pytest.raises(native.ExecutionError, match="unknown method 'forwards'; did you mean 'forward'"):
        reference.execute(pte, (x,), method="forwards")
    with pytest.raises(native.ExecutionError, match="takes 1 inputs, not 2"):
        reference.execute(pte, (x, x))
    with pytest.raises(native.ExecutionError, match=r"shape \[3, 2\]"):
        reference.execute(pte, (x.T,))


@pytest.mark.parametrize("pte", [b"", b"no program", b"\0" * 4096])
def test_what_is_no_program_is_an_error(pte):
    with pytest.raises(native.ExecutionError, match="cannot be read"):
        reference.execute(pte, ())


def test_methods_that_share_a_package_in_the_named_data():
    """Their delegates are references to one package with a function for each method."""
    torch.manual_seed(0)
    linear = nn.Linear(3, 40)

    class Twice(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.linear, self.factor = linear, factor

        def forward(self, x):
            return self.linear(x) * self.factor

    x, wide = torch.randn(2, 3), torch.randn(5, 3)
    methods = {"forward": Twice(1).eval(), "double": Twice(2).eval()}
    pte = lowered(methods, {"forward": (x,), "double": (wide,)}, target="iOS18")
    assert b"CMJR" in pte
    program = reference.ReferenceProgram(pte)
    assert sorted(program.methods) == ["double", "forward"]
    for name, inputs in [("forward", x), ("double", wide)]:
        (got,) = program.execute((inputs,), name)
        torch.testing.assert_close(got, methods[name](inputs), rtol=1e-4, atol=1e-5)
