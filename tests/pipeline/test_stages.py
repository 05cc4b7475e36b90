import dataclasses

import pytest
import torch

from opsuite.cases import Built, Case, CaseSkipped, function_module
from opsuite.flows import FLOWS
from opsuite.pipeline import execute
from opsuite.pipeline.accuracy import STATIC_INT8
from opsuite.pipeline.pipeline import MESSAGE_LIMIT
from opsuite.runtime import native


def raising(error):
    def raise_it(*arguments):
        raise error

    return raise_it


def depends_on_data(x):
    return x + 1 if x.sum() > 0 else x - 1


VECTOR = torch.tensor([1.0, -2.0, 3.0])


@pytest.mark.parametrize(
    ("what", "flow", "outcome", "kind", "message"),
    [
        (Case("c", raising(CaseSkipped("needs a moon"))), "portable", "skip:case", "CaseSkipped", "needs a moon"),
        (Case("c", raising(ValueError("no weights"))), "portable", "skip:build", "ValueError", "no weights"),
        (Case("c", raising(SystemExit(0))), "portable", "skip:build", "SystemExit", "0"),
        (Case("c", lambda: (torch.nn.ReLU(), [VECTOR])), "portable", "skip:build", "TypeError", "not a tuple"),
        (raising(RuntimeError("not today")), "portable", "skip:eager", "RuntimeError", "not today"),
        (raising(SystemExit(3)), "portable", "skip:eager", "SystemExit", "3"),
        (raising(ValueError("\udcff")), "portable", "skip:eager", "ValueError", "\\udcff"),
        (depends_on_data, "xnnpack_static_int8_per_channel", "fail:quantize", "Unsupported", "ata-dependent"),
        (depends_on_data, "portable", "fail:export", "Unsupported", "ata-dependent"),
        (lambda x: torch.relu(x.int()), "coreml", "fail:lower", "ValueError", "relu"),
        (torch.median, "portable", "fail:execute", "MissingKernelError", "aten::median"),
    ],
)
def test_a_failure_is_named_by_its_stage(taken, what, flow, outcome, kind, message):
    stages, tracebacks = [], []
    record = taken(what, VECTOR, flow=flow, on_stage=stages.append, on_traceback=tracebacks.append)
    assert record.outcome == outcome
    assert record.error.type == kind
    assert message in record.error.message
    assert record.stage == stages[-1] in record.seconds
    assert record.delegated is None or outcome == "fail:execute"
    if outcome == "skip:case":
        assert tracebacks == []
    else:
        assert kind in tracebacks[0]
    # It can be written, and read back.
    assert type(record).from_line(record.to_line()) == record


def test_a_failing_quantizer_is_a_failure_of_quantize_with_the_seconds_of_its_steps(taken):
    flow = dataclasses.replace(FLOWS.get("portable"), quantizer=raising(RuntimeError("no observers")))
    record = taken(torch.nn.ReLU(), VECTOR, flow=flow)
    assert (record.outcome, record.error.message) == ("fail:quantize", "no observers")
    assert {"quantize.capture", "quantize.prepare"} <= record.seconds.keys()
    assert "quantize.convert" not in record.seconds


def test_a_failure_of_serialization_is_named(taken, monkeypatch):
    from executorch.exir import EdgeProgramManager

    monkeypatch.setattr(EdgeProgramManager, "to_executorch", raising(RuntimeError("no memory plan")))
    record = taken(torch.nn.ReLU(), VECTOR)
    assert (record.outcome, record.stage) == ("fail:serialize", "serialize")
    assert record.delegated == "none"
    assert record.pte_bytes is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y.double(), "output 0: dtype float64 instead of float32"),
        (lambda y: y.reshape(1, 3), "output 0: shape (1, 3) instead of (3,)"),
        (lambda y: y + 0.5, "output 0: 3 of 3 elements differ by more than 0.0001 + 0.001 * |reference| (max abs 0.5"),
        (lambda y: y * torch.nan, "max abs inf"),
    ],
)
def test_a_wrong_output_is_a_failure_of_compare_that_names_what_is_wrong(taken, monkeypatch, change, message):
    run = native.execute
    monkeypatch.setattr(execute.native, "execute", lambda pte, inputs: [change(y) for y in run(pte, inputs)])
    record = taken(torch.nn.Sigmoid(), VECTOR)
    assert (record.outcome, record.error.type) == ("fail:compare", "OutputMismatchError")
    assert message in record.error.message
    assert len(record.accuracy) == 1


def test_a_missing_output_is_a_failure_of_compare(taken, monkeypatch):
    run = native.execute
    monkeypatch.setattr(execute.native, "execute", lambda pte, inputs: run(pte, inputs)[:1])
    record = taken(lambda x: (x + 1, x + 2), VECTOR)
    assert (record.outcome, record.error.message) == ("fail:compare", "1 outputs instead of 2")


def test_an_offset_cannot_hide_that_the_resolution_around_it_is_lost(taken, monkeypatch):
    run = native.execute
    monkeypatch.setattr(execute.native, "execute", lambda pte, inputs: [y.round() for y in run(pte, inputs)])
    flow = dataclasses.replace(FLOWS.get("portable"), thresholds=STATIC_INT8)
    # Within 4 % of its value everywhere, and a plain SQNR of some 50 dB.
    record = taken(lambda x: x + 100, torch.linspace(-1, 1, 50), flow=flow)
    figures = record.accuracy[0].against_float
    assert figures.sqnr_db > 40
    assert figures.sqnr_centred_db < 20
    assert record.outcome == "fail:compare"
    assert "SQNR about the mean" in record.error.message


def test_the_stages_of_a_pass_are_told_and_timed_in_order(taken):
    stages = []
    record = taken(
        torch.nn.Linear(3, 2), torch.randn(4, 3), flow="xnnpack_static_int8_per_channel", on_stage=stages.append
    )
    assert stages == ["build", "eager", "quantize", "export", "lower", "serialize", "execute", "compare"]
    assert (record.outcome, record.delegated, record.runtime) == ("pass", "full", "native:xnnpack")
    steps = {f"quantize.{step}" for step in ("capture", "prepare", "calibrate", "convert")}
    assert record.seconds.keys() == {*stages, *steps}
    assert sum(record.seconds[step] for step in steps) <= record.seconds["quantize"]
    assert record.quantized_nodes > 0
    assert record.quantization_changed_lowering
    assert record.pte_bytes > 0
    assert (record.error, record.stage) == (None, None)
    # Against the converted program and against float; the latter also without the runtime.
    assert record.accuracy[0].against_converted.sqnr_db > record.accuracy[0].against_float.sqnr_db > 20
    assert record.quantization[0].against_float is not None


@pytest.mark.parametrize("flow", ["portable", "xnnpack"])
def test_without_a_runtime_nothing_is_a_pass(taken, flow):
    record = taken(torch.nn.ReLU(), VECTOR, flow=flow, runtime="none")
    assert (record.outcome, record.stage, record.runtime) == ("unverified", "execute", None)
    assert "--runtime none" in record.error.message
    assert record.accuracy == []
    assert record.pte_bytes > 0


@pytest.mark.skipif(native.is_available("CoreMLBackend"), reason="Core ML executes here")
def test_a_delegate_that_nothing_here_executes_is_unverified(taken):
    record = taken(torch.nn.ReLU(), VECTOR, flow="coreml")
    assert (record.outcome, record.delegated, record.runtime) == ("unverified", "full", None)
    assert record.error.message == "no runtime here executes CoreMLBackend"
    assert record.accuracy == []


def test_a_model_that_writes_into_its_inputs_is_compared_with_what_it_was_given(taken):
    record = taken(lambda x, y: (x.add_(1) * 2, y), VECTOR.clone(), torch.ones(2))
    assert record.outcome == "pass"
    assert [output.shape for output in record.accuracy] == [[3], [2]]


def test_nested_inputs_and_outputs_are_flat_in_order(taken):
    def function(pair, z):
        return {"sum": pair[0] + pair[1]}, [z * 2, pair[0].sum()]

    record = taken(function, (VECTOR, VECTOR + 1), torch.ones(2, 2))
    assert record.outcome == "pass"
    assert [output.shape for output in record.accuracy] == [[3], [2, 2], []]


def test_fresh_inputs_are_another_draw_of_the_same_form(taken, monkeypatch):
    seen = []
    run = native.execute
    monkeypatch.setattr(execute.native, "execute", lambda pte, inputs: [seen.append(inputs), *run(pte, inputs)][1:])
    given = torch.full((2, 3, 4, 5), 7.0).to(memory_format=torch.channels_last)
    case = Case("fresh", lambda: Built(function_module(torch.abs), (given,), fresh_inputs=True))
    taken(case)
    (drawn,) = seen[0]
    assert (drawn.shape, drawn.dtype, drawn.stride()) == (given.shape, given.dtype, given.stride())
    assert not torch.equal(drawn, given)
    taken(case)
    assert torch.equal(seen[1][0], drawn)


def test_dynamic_shapes_are_exported(taken, monkeypatch):
    from opsuite.pipeline import pipeline

    exported = []
    stages = dict(pipeline.ORDER)

    def keep(state):
        stages["export"](state)
        exported.append(state.exported)

    monkeypatch.setattr(pipeline, "ORDER", tuple((n, keep if n == "export" else f) for n, f in pipeline.ORDER))
    shapes = ({0: torch.export.Dim("n", min=2, max=8)},)
    case = Case("dynamic", lambda: (torch.nn.ReLU(), (torch.randn(4, 3),)), dynamic_shapes=shapes)
    assert taken(case).outcome == "pass"
    (constraint,) = exported[0].range_constraints.values()
    assert (constraint.lower, constraint.upper) == (2, 8)


def test_long_messages_are_cut_in_the_record_and_whole_in_the_traceback(taken):
    tracebacks = []
    record = taken(raising(ValueError("x" * 3 * MESSAGE_LIMIT)), VECTOR, on_traceback=tracebacks.append)
    assert record.error.message == "x" * MESSAGE_LIMIT + " [...]"
    assert "x" * 3 * MESSAGE_LIMIT in tracebacks[0]


def test_ctrl_c_in_a_case_is_not_its_failure(taken):
    with pytest.raises(KeyboardInterrupt):
        taken(raising(KeyboardInterrupt()), VECTOR)
