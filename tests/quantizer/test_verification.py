"""`opsuite verify-quantizer`: that it reaches a verdict, and that a planted fault is found and shrunk."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest
import torch
from torch import nn

from opsuite.cases import Case, CaseSkipped
from opsuite.cases.suite import CaseSuite
from opsuite.exits import Exit
from opsuite.flows import FLOWS
from opsuite.quantizer import pattern_models, verification
from opsuite.quantizer.equivalence import Difference
from opsuite.quantizer.patterns import PATTERNS
from opsuite.quantizer.verification import Checked, Verification, verify_cases, verify_random

FLOW = FLOWS.get("coreml_static_int8")


def suite_of(**builds):
    suite = CaseSuite("planted")
    for name, build in builds.items():
        suite.add(Case(name, build))
    return suite


def raising(error):
    def build():
        raise error

    return build


def test_cases_are_compared_in_both_modes(oracle):
    suite = suite_of(
        norm=lambda: (nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU()), (torch.randn(2, 2, 3, 3),)),
        skipped=raising(CaseSkipped("not here")),
        broken=raising(RuntimeError("no weights")),
    )
    seen = []
    result = Verification(seen.append)
    verify_cases(result, suite, suite.cases, FLOW)
    assert [checked.name for checked in seen] == ["norm ptq", "norm qat", "skipped", "broken"]
    assert [checked.unreached for checked in result.unreached] == ["skipped: not here", "RuntimeError: no weights"]
    assert (result.compared, result.different) == (2, [])
    # Post-training quantization folds the batch norm; training captures it.
    assert {"conv2d+relu", "conv2d+batch_norm+relu"} <= set(result.reached.patterns)


def test_random_models_are_distinct_and_as_many_as_asked_for(monkeypatch):
    scripts, names = [], []

    def check_model(name, model):
        scripts.append(str(model))
        return Checked(name)

    monkeypatch.setattr(verification, "check_model", check_model)
    result = Verification(lambda checked: names.append(checked.name))
    verify_random(result, 60, seed=0)
    assert names == [f"random model {number} of seed 0" for number in range(1, 61)]
    assert len(set(scripts)) == result.compared == 60


def test_what_torch_keeps_of_every_model_is_dropped_now_and_then():
    from torch.fx.graph_module import _loader

    torch.fx.symbolic_trace(nn.ReLU()).recompile()
    before = len(_loader.eval_cache)
    verification._forget(verification._RESET_EVERY + 1)
    assert len(_loader.eval_cache) == before > 0
    verification._forget(verification._RESET_EVERY)
    assert len(_loader.eval_cache) == 0


def test_a_difference_is_shrunk_to_a_minimal_model(monkeypatch):
    """Planted: whatever holds a product differs."""

    def check_model(name, model):
        body = model.script.split("class Model")[1].partition("INPUTS")[0]
        found = (Difference("annotation", "mul", "a", "b"),) if "torch.mul" in body else ()
        return Checked(name, found, model=str(model))

    monkeypatch.setattr(verification, "check_model", check_model)
    result = Verification()
    verify_random(result, 300, seed=0)
    (checked,) = result.different
    body = re.search(r"class Model(.*\n)*    def forward.*\n((?: {8}.*\n)+)", checked.model).group(2).splitlines()
    assert len(body) <= 3, checked.model


def test_there_is_one_model_for_each_pattern():
    assert list(pattern_models.suite().cases) == [f"patterns/{key}" for key in PATTERNS]


def test_the_command_reports(cli, oracle):
    ended = cli("verify-quantizer", "patterns", "-k", "linear and relu_ and not (leaky_relu_ or batch_norm)", "--json")
    found = json.loads(ended.out)
    assert ended.code == Exit.OK
    assert (found["compared"], found["different"], found["unreached"]) == (2, [], [])
    assert found["patterns_reached"] == {"linear+relu_": 2}


def test_the_command_fails_on_a_difference(cli, oracle, monkeypatch):
    from opsuite.quantizer import specs

    monkeypatch.setitem(specs.STORAGE_DTYPES, torch.quint8, torch.int8)
    ended = cli("verify-quantizer", "patterns/linear")
    assert ended.code == Exit.FAILURES
    assert "patterns/linear ptq: " in ended.out
    assert "int8" in ended.out
    assert "2 compared" in ended.out.splitlines()[-1]
    assert "reached 1 of 351 patterns" in ended.out.splitlines()[-2]


def test_comparing_nothing_is_not_success(cli, tmp_path):
    cases = tmp_path / "broken.py"
    cases.write_text("from opsuite.cases import Case\nCASES = [Case('c', lambda: 1 / 0)]\n")
    ended = cli("verify-quantizer", cases)
    assert ended.code == Exit.INCOMPLETE
    assert "not compared, 1: ZeroDivisionError" in ended.out


def test_the_command_names_what_is_missing(cli, monkeypatch):
    cli("verify-quantizer", "patterns", "-k", "nothing").assert_one_line_error(Exit.NOTHING_SELECTED)
    find_spec = importlib.util.find_spec
    absent = ("transformers", "hypothesis")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name in absent else find_spec(name, *a))
    cli("verify-quantizer", "models").assert_one_line_error(Exit.ENVIRONMENT, "pip install transformers")
    cli("verify-quantizer", "--random", "1").assert_one_line_error(Exit.ENVIRONMENT, "pip install hypothesis")


@pytest.mark.slow
def test_random_models_are_quantized_alike():
    from opsuite.quantizer.equivalence import comparing

    result = Verification()
    with comparing():
        verify_random(result, 100, seed=0)
    assert result.different == []
    assert result.compared > 90


@pytest.mark.slow
def test_whole_models_are_quantized_alike():
    """ResNet-18, MobileNetV2 and BERT from transformers."""
    pytest.importorskip("transformers")
    from opsuite.quantizer import known_models
    from opsuite.quantizer.equivalence import comparing

    suite = known_models.suite()
    result = Verification()
    with comparing():
        verify_cases(result, suite, suite.cases, FLOW)
    assert (result.compared, result.unreached, result.different) == (6, [], [])


@pytest.mark.slow
def test_the_smallest_model_of_each_pattern_is_quantized_alike():
    from opsuite.quantizer.equivalence import comparing

    suite = pattern_models.suite()
    result = Verification()
    with comparing():
        verify_cases(result, suite, suite.cases, FLOW)
    assert (result.compared, result.unreached, result.different) == (2 * len(PATTERNS), [], [])
    # Batch norms behind convolutions are only there in training.
    assert set(result.reached.patterns) == set(map(str, PATTERNS))


def test_suites_are_compared_without_hypothesis():
    # An installation without the development extra has none.
    blocked = "import sys; sys.modules['hypothesis'] = None; import opsuite.quantizer.verification"
    subprocess.run([sys.executable, "-c", blocked], check=True, capture_output=True)
