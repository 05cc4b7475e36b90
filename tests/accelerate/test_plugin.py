import pytest

pytest_plugins = ["pytester"]

# Parts of torch only: the others import executorch and Core ML Tools, which takes each worker seconds.
SUITE = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_under_acceleration(number):
    from torch._export import utils
    from torch.fx.traceback import NodeSource
    applied = {"node-history"} if hasattr(NodeSource, "__deepcopy__") else set()
    if hasattr(utils._materialize_cpp_cia_ops, "__wrapped__"):
        applied.add("composite-ops")
    assert applied == EXPECTED
"""


@pytest.fixture
def suite(pytester):
    def run(expected, *arguments, how=pytester.runpytest_inprocess):
        pytester.makepyfile(f"EXPECTED = {expected!r}\n{SUITE}")
        return how("-p", "opsuite.accelerate", *arguments)

    return run


def test_named_parts_are_on_in_workers(suite, pytester):
    result = suite(
        {"composite-ops", "node-history"},
        "--accelerate-parts=composite-ops,node-history",
        "-n1",
        how=pytester.runpytest_subprocess,
    )
    result.assert_outcomes(passed=4)


def test_parts_come_from_the_ini_file(suite, pytester):
    pytester.makeini("[pytest]\naccelerate_parts = node-history, composite-ops\naccelerate_without = composite-ops")
    result = suite({"node-history"})
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["opsuite.accelerate: node-history"])


def test_none_applies_nothing(suite):
    result = suite(set(), "--accelerate-parts=none")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["opsuite.accelerate: nothing applied"])


def test_an_unknown_part_is_a_usage_error(suite):
    result = suite(set(), "--accelerate-parts=magic")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*opsuite.accelerate: no part named magic; parts are coreml-quantizer, *"])
