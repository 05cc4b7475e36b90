"""Faults that users of Core ML and ExecuTorch have reported: each gets a verdict that names it, or the right value."""

import pytest
import torch

from opsuite.cases import Case, find_suite
from opsuite.runtime import native

OPERATORS = find_suite("operators")
off_macos = pytest.mark.skipif(native.is_available("CoreMLBackend"), reason="Core ML executes here")


def test_the_alpha_of_a_subtraction_is_honoured_outside_the_delegate(taken):
    record = taken(OPERATORS.case("operators/sub/alpha@3"), flow="coreml")
    assert (record.outcome, record.delegated, record.runtime) == ("pass", "none", "native:portable")
    assert record.delegation.undelegated_ops == {"aten::sub.Tensor": 1}
    assert record.accuracy[0].against_float.max_abs < 1e-6


@pytest.mark.parametrize("flow", ["xnnpack", "portable"])
def test_rank_0_inputs_are_executed(taken, flow):
    record = taken(OPERATORS.case("operators/add/rank0"), flow=flow)
    assert record.outcome == "pass"
    assert record.accuracy[0].shape == []


@off_macos
def test_rank_0_inputs_lower_to_core_ml(taken):
    record = taken(OPERATORS.case("operators/add/rank0"), flow="coreml")
    assert (record.outcome, record.delegated) == ("unverified", "full")


def test_channels_last_inputs_fail_to_lower_with_the_converters_reason(taken):
    record = taken(OPERATORS.case("operators/conv2d/channels_last"), flow="coreml_static_int8")
    assert (record.outcome, record.stage, record.error.type) == ("fail:lower", "lower", "NotImplementedError")
    assert "Core ML does not have general support for non-contiguous dim order" in record.error.message
    # What quantization costs is known before the lowering fails.
    assert record.quantization[0].against_float.sqnr_db > 35


@off_macos
def test_a_linear_behind_an_lstm_is_quantized_and_the_lstm_stays_float(taken):
    record = taken(OPERATORS.case("operators/lstm/into_linear"), flow="coreml_static_int8")
    assert record.outcome == "unverified"
    assert record.quantization_changed_lowering
    figures = record.quantization[0].against_float
    assert figures.sqnr_db >= 35
    alone = Case("lstm", lambda: (torch.nn.LSTM(6, 5, batch_first=True), (torch.randn(2, 4, 6),)))
    record = taken(alone, flow="coreml_static_int8")
    assert (record.outcome, record.quantized_nodes, record.quantization_changed_lowering) == ("unverified", 0, False)
