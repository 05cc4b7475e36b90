import pytest
import torch
from executorch.exir import to_edge_transform_and_lower

from opsuite.cases import function_module
from opsuite.runtime import native


def pte_of(function, *inputs):
    program = to_edge_transform_and_lower(torch.export.export(function_module(function), inputs))
    return program.to_executorch().buffer


def test_nested_inputs_and_several_outputs_are_flat_and_in_order():
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    pte = pte_of(lambda pair, c: (pair[0] - pair[1], c * 2), (a, b), a)
    outputs = native.execute(pte, ((a, b), a))
    torch.testing.assert_close(outputs, [a - b, a * 2], rtol=0, atol=0)


def test_outputs_live_on_after_the_program():
    x = torch.randn(64, 64)
    pte = pte_of(torch.neg, x)
    first = native.execute(pte, (x,))
    native.execute(pte, (torch.zeros_like(x),))
    assert torch.equal(first[0], -x)


@pytest.mark.parametrize("pte", [b"", b"no program", b"\0" * 4096])
def test_what_is_no_program_is_an_error_not_a_crash(pte):
    with pytest.raises(native.ExecutionError):
        native.execute(pte, ())


def test_wrong_inputs_are_told_in_the_words_of_the_native_code(capfd):
    pte = pte_of(torch.neg, torch.randn(2, 3))
    # pytest's own stderr is no file descriptor 2.
    with capfd.disabled(), pytest.raises(native.ExecutionError, match=r"0x10; .*\(2, 3\).*\(4, 3\)") as error:
        native.execute(pte, (torch.randn(4, 3),))
    assert len(str(error.value)) < 500


def test_missing_kernels_are_named_with_their_overload():
    known = [("aten::add", "out"), ("aten::median", "out"), ("aten::nothing", "")]
    assert native.missing_kernels(known) == ["aten::median.out", "aten::nothing"]


def test_backends_of_this_build_are_told():
    assert "XnnpackBackend" in native.registered_backends()
    assert native.missing_delegates(["XnnpackBackend", "NoSuchBackend"]) == ["NoSuchBackend"]


def test_what_other_libraries_print_is_not_taken_for_the_reason():
    said = (
        "Error in cpuinfo: failed to open midr file\n"
        "[op_convolution.cpp:62] Check failed (in.dim() == 3): got, 5.\n"
        "[method.cpp:1243] KernelCall failed at instruction 0:9 in operator aten::convolution.out: 0x12\n"
    )
    assert native._complaints(said) == [
        "Check failed (in.dim() == 3): got, 5.",
        "KernelCall failed at instruction 0:9 in operator aten::convolution.out: 0x12",
    ]
