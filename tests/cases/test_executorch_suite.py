import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from peer_calls import describe

from opsuite.cases import Case, CaseSkipped, find_suite
from opsuite.cases.executorch import PREFIX, ExecutorchSuite, PeerTest, collect, suite_directory
from opsuite.exits import Exit, OpsuiteError
from opsuite.flows import FLOWS

FLOAT, QUANTIZED = "portable", "xnnpack_static_int8_per_channel"
PEER_TESTS = 467


@pytest.fixture(scope="session")
def peer(tmp_path_factory):
    """The calls of each of the peer's tests, by flow and by our form of the test's ID, from the peer's own runner."""
    path = tmp_path_factory.mktemp("peer") / "calls.json"
    arguments = ["-c", os.devnull, f"--rootdir={suite_directory()}", "-q", "-p", "peer_calls", "-p", "no:cacheprovider"]
    arguments += ["-m", f"flow_{FLOAT} or flow_{QUANTIZED}", str(suite_directory() / "operators")]
    subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        env={**os.environ, "PEER_CALLS": str(path), "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        check=True,
    )
    calls = {FLOAT: {}, QUANTIZED: {}}
    for node_id, found in json.loads(path.read_text()).items():
        flow = re.search(rf"[\[-]({FLOAT}|{QUANTIZED})[\]-]", node_id)[1]
        plain = node_id.replace(f"[{flow}]", "").replace(f"[{flow}-", "[").replace(f"-{flow}]", "]")
        calls[flow][PREFIX + plain] = found
    return calls


@pytest.fixture(scope="session")
def suite():
    return find_suite("executorch:operators")


@pytest.mark.parametrize("flow", [FLOAT, QUANTIZED])
def test_every_test_and_every_call_of_the_peer_is_a_case(peer, suite, flow):
    assert len(peer[flow]) == PEER_TESTS
    expected = []
    for test, calls in peer[flow].items():
        # A test that the peer skips before its first call is one case, which tells the reason.
        expected += [f"{test}#{number}" for number in range(1, max(1, len(calls)) + 1)]
    listing = suite.listing(FLOWS.get(flow))
    assert listing.sources == PEER_TESTS
    assert sorted(listing.case_ids) == sorted(expected)


@pytest.mark.parametrize("flow", [FLOAT, QUANTIZED])
def test_every_case_builds_what_the_peer_would_lower(peer, suite, flow):
    for test, calls in peer[flow].items():
        for number, call in enumerate(calls, start=1):
            built = suite.case(f"{test}#{number}").instantiate(0, FLOWS.get(flow))
            assert describe(built.module, built.inputs) == {"layers": call["layers"], "inputs": call["inputs"]}, test
            assert built.fresh_inputs == call["fresh"], test
            assert (built.dynamic_shapes is not None) == call["dynamic"], test


def test_what_the_peer_skips_has_a_reason(peer, suite):
    skipped = [test for test, calls in peer[FLOAT].items() if not calls]
    assert skipped
    for test in skipped:
        with pytest.raises(CaseSkipped, match=r"."):
            suite.case(test + "#1").instantiate(0, FLOWS.get(FLOAT))


def test_the_quantizable_lstm_is_taken_by_quantized_flows_alone(suite):
    case = suite.case("executorch:operators/test_lstm.py::test_lstm_no_bias_dtype[float32]#1")
    modules = {
        flow: type(case.instantiate(0, FLOWS.get(flow)).module.lstm).__module__
        for flow in ("coreml", "coreml_static_int8")
    }
    assert modules == {"coreml": "torch.nn.modules.rnn", "coreml_static_int8": "torch.ao.nn.quantizable.modules.rnn"}


def suite_of(*tests):
    suite = ExecutorchSuite("operators")
    suite.__dict__["tests"] = {test.node_id: test for test in tests}
    return suite


def call_with_options(runner):
    runner.lower_and_run_model(torch.nn.ReLU(), [torch.ones(2)], dynamic_shapes=("first",))
    runner.lower_and_run_model(torch.nn.ReLU(), (torch.ones(3),), generate_random_test_inputs=False)
    raise RuntimeError("after the second call")


def test_options_of_each_call_are_passed_through():
    suite = suite_of(PeerTest("operators/test_x.py::test_x", call_with_options))
    flow = FLOWS.get(FLOAT)
    # The third is what the test raises after its second call.
    assert [case_id[-2:] for case_id in suite.listing(flow).case_ids] == ["#1", "#2", "#3"]
    first, second, third = (suite.case(case_id) for case_id in suite.listing(flow).case_ids)
    built = first.instantiate(0, flow)
    assert (built.dynamic_shapes, built.fresh_inputs, type(built.inputs)) == (("first",), True, tuple)
    built = second.instantiate(0, flow)
    assert (built.dynamic_shapes, built.fresh_inputs) == (None, False)
    with pytest.raises(RuntimeError, match="after the second call"):
        third.instantiate(0, flow)


def test_a_test_that_swallows_exceptions_cannot_swallow_the_capture():
    def greedy(runner):
        try:
            runner.lower_and_run_model(torch.nn.ReLU(), (torch.ones(1),))
        except Exception:
            raise AssertionError("caught") from None

    suite = suite_of(PeerTest("operators/test_x.py::greedy", greedy))
    assert isinstance(
        suite.case("executorch:operators/test_x.py::greedy#1").instantiate(0, FLOWS.get(FLOAT)).module, torch.nn.ReLU
    )


def test_a_test_without_calls_stays_listed_under_its_own_id():
    suite = suite_of(
        PeerTest("operators/test_x.py::idle", lambda runner: None),
        PeerTest("operators/test_y.py", lambda runner: None, skip="cannot be collected: ImportError: no module"),
    )
    flow = FLOWS.get(FLOAT)
    assert suite.listing(flow).case_ids == (
        "executorch:operators/test_x.py::idle",
        "executorch:operators/test_y.py",
    )
    for case_id, reason in zip(suite.listing(flow).case_ids, ["0 times", "cannot be collected"], strict=True):
        case = suite.case(case_id)
        assert isinstance(case, Case)
        with pytest.raises(CaseSkipped, match=reason):
            case.instantiate(0, flow)


def test_modules_that_fail_to_import_parameters_marks_and_fixtures_are_collected(tmp_path, monkeypatch):
    part = tmp_path / "operators"
    part.mkdir()
    (part / "test_broken.py").write_text("import no_such_module\n")
    (part / "test_fine.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [2, 3])\n"
        "def test_param(test_runner, n):\n"
        "    import torch\n"
        "    test_runner.lower_and_run_model(torch.nn.ReLU(), (torch.ones(n),))\n"
        "@pytest.mark.skip(reason='not today')\n"
        "def test_marked(test_runner): pass\n"
        "def test_fixture(test_runner, tmp_path): pass\n"
    )
    monkeypatch.setattr("opsuite.cases.executorch.suite_directory", lambda: tmp_path)
    tests = {test.node_id: test for test in collect("operators")}
    assert "no_such_module" in tests["operators/test_broken.py"].skip
    assert tests["operators/test_fine.py::test_marked"].skip == "not today"
    assert (
        tests["operators/test_fine.py::test_fixture"].skip
        == "needs the fixtures ['request', 'tmp_path', 'tmp_path_factory']"
    )
    suite = suite_of(*tests.values())
    case = suite.case("executorch:operators/test_fine.py::test_param[3]#1")
    assert case.instantiate(0, FLOWS.get(FLOAT)).inputs[0].shape == (3,)


@pytest.mark.parametrize("name", ["test_add.py::test_add_dtype[float33]#1", "test_add.py::test_add_dtype[float32]#x"])
def test_an_unknown_case_is_refused_with_the_nearest_ones(suite, name):
    with pytest.raises(OpsuiteError, match=r"did you mean .*test_add_dtype\[float32\]#1"):
        suite.case("executorch:operators/" + name)


def test_a_call_beyond_the_last_is_a_reasoned_skip(suite):
    with pytest.raises(CaseSkipped, match="calls lower_and_run_model 1 times"):
        suite.case("executorch:operators/test_add.py::test_add_dtype[float32]#2").instantiate(0, FLOWS.get(FLOAT))


def test_a_suite_whose_modules_all_lack_a_library_says_what_to_install():
    suite = ExecutorchSuite("models", needs_one_of=("no_such_module", "nor_this_one"))
    with pytest.raises(OpsuiteError, match="needs no_such_module or nor_this_one: pip install") as refused:
        suite.listing(FLOWS.get(FLOAT))
    assert refused.value.code is Exit.ENVIRONMENT
