"""The quantizer's profile against executorch's own quantizer, with fewer patterns so that it takes seconds."""

import json

import pytest

from opsuite.exits import Exit
from opsuite.profiling.builds import counting_builds
from opsuite.profiling.quantizer import SECOND_MODEL, profile_quantizer

UTILS = "executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils"
# 4 weighted cores with and without batch norm, and 7 binary functions
PATTERNS = 4 * 2 + 7


@pytest.fixture
def no_activation(monkeypatch):
    monkeypatch.setattr(f"{UTILS}._supported_activations", ())
    monkeypatch.setattr(f"{UTILS}._supported_activations_no_inplace", ())


def test_executorch_builds_every_pattern_for_every_model(no_activation):
    first, second = profile_quantizer("executorch", [SECOND_MODEL] * 2)
    assert (first.builds, first.distinct, first.new) == (PATTERNS, PATTERNS, PATTERNS)
    assert (second.builds, second.distinct, second.new) == (PATTERNS, PATTERNS, 0)
    assert 0 < first.build_seconds < first.seconds
    assert first.mean_build_seconds == first.build_seconds / PATTERNS


def test_the_cache_builds_what_a_model_needs_once(no_activation):
    first, second = profile_quantizer("executorch+cache", [SECOND_MODEL] * 2)
    assert 0 < first.builds == first.new < PATTERNS
    assert (second.builds, second.mean_build_seconds) == (0, None)


def test_opsuite_builds_nothing():
    assert [call.builds for call in profile_quantizer("opsuite", [SECOND_MODEL] * 2)] == [0, 0]


def test_counting_ends_with_its_block():
    from executorch.backends.apple.coreml.quantizer import _coreml_quantizer_utils as utils

    before = utils._get_aten_graph_module_for_pattern
    with counting_builds():
        assert utils._get_aten_graph_module_for_pattern is not before
    assert utils._get_aten_graph_module_for_pattern is before


def test_the_command_profiles_a_case_several_times_and_then_another_model(cli):
    ended = cli("profile", "operators/conv2d/plain", "--quantizer", "opsuite", "--calls", "2", "--json")
    found = json.loads(ended.out)
    assert found["quantizer"] == "opsuite"
    assert [call["model"] for call in found["calls"]] == ["operators/conv2d/plain"] * 2 + ["Linear + ReLU"]


def test_the_command_prints_a_table_and_the_sum(cli, no_activation):
    lines = cli("profile", "operators/add/rank0", "--quantizer", "executorch", "--calls", "1").out.splitlines()
    assert lines[0].split()[:3] == ["call", "model", "prepare"]
    assert lines[1].split()[-2:] == [str(PATTERNS), str(PATTERNS)]
    assert lines[2].split()[-2:] == [str(PATTERNS), "0"]
    assert lines[3].startswith(
        f"executorch: {2 * PATTERNS} pattern builds in 2 calls, {PATTERNS} distinct by arguments"
    )


def test_a_callable_is_profiled_through_a_flow(cli, tmp_path, monkeypatch):
    (tmp_path / "user_models.py").write_text(
        "import torch\n\n\ndef model():\n    return torch.nn.ReLU(), (torch.randn(2),)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    trace = tmp_path / "stacks.json"
    ended = cli("profile", "user_models:model", "-f", "portable", "--no-accelerated", "--trace", trace)
    *rows, last = ended.out.splitlines()
    assert [row.split()[0] for row in rows[1:]][-5:] == ["export", "lower", "serialize", "execute", "compare"]
    assert last.startswith("user_models:model, portable: 1 pass, ")
    assert json.loads(trace.read_text())["shared"]["frames"]


def test_a_flow_is_profiled_over_a_suite(cli, tmp_path):
    cases = tmp_path / "few.py"
    cases.write_text(
        "import torch\nfrom opsuite.cases import Case\n"
        "CASES = [Case(f'c{i}', lambda: (torch.nn.ReLU(), (torch.randn(2),))) for i in range(2)]\n"
    )
    found = json.loads(cli("profile", cases, "-f", "portable", "--no-accelerated", "--json").out)
    assert [case["outcome"] for case in found["cases"]] == ["pass", "pass"]
    steps = {step["step"]: step["seconds"] for step in found["steps"]}
    assert steps["lower"] == pytest.approx(sum(case["seconds"]["lower"] for case in found["cases"]))
    assert sum(step["share"] for step in found["steps"] if "." not in step["step"]) == pytest.approx(100)


@pytest.mark.parametrize(
    ("what", "code", "word"), [("no_such_module:f", Exit.USAGE, "no_such_module"), ("nothing", Exit.USAGE, "nothing")]
)
def test_what_cannot_be_profiled_is_named(cli, what, code, word):
    cli("profile", what).assert_one_line_error(code, word)
