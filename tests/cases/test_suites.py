import pytest
import torch

from opsuite.cases import SUITES, Built, Case, CaseSuite, find_suite, function_module, resolve
from opsuite.cases.suite import load_file_suite
from opsuite.exits import OpsuiteError
from opsuite.flows import FLOWS
from opsuite.registry import Registry

PORTABLE = FLOWS.get("portable")


def relu_case(case_id="relu"):
    return Case(case_id, lambda: (torch.nn.ReLU(), (torch.randn(2),)))


def test_registries_return_what_they_register_and_refuse_a_name_twice():
    suites = Registry("suite")
    suite = CaseSuite("mine")
    assert suites.register(suite) is suite
    with pytest.raises(ValueError, match="suite 'mine' is registered twice"):
        suites.register(CaseSuite("mine"))
    case = relu_case()
    assert suite.add(case) is case
    with pytest.raises(ValueError, match="case 'relu' is registered twice"):
        suite.add(relu_case())


@pytest.mark.parametrize("case_id", ["", " relu", "relu\n", "re\tlu", "re\x1blu"])
def test_ids_that_could_not_name_a_line_are_refused(case_id):
    with pytest.raises(OpsuiteError, match="is not a case ID"):
        CaseSuite("mine").add(relu_case(case_id))


def test_our_operators_are_listed_in_order_and_each_can_be_built():
    suite = find_suite("operators")
    ids = suite.listing(PORTABLE).case_ids
    assert len(ids) == len(set(ids)) > 0
    for case_id in ids:
        built = suite.case(case_id).instantiate(0, PORTABLE)
        assert case_id.startswith("operators/")
        assert not built.module.training
        built.module(*built.inputs)


def test_the_nearest_names_are_suggested_for_an_unknown_case_and_suite():
    with pytest.raises(OpsuiteError, match="did you mean 'operators/add/same_shape'"):
        find_suite("operators").case("operators/add/same_shap")
    with pytest.raises(OpsuiteError, match="did you mean 'operators'"):
        resolve("operator")
    with pytest.raises(OpsuiteError, match="known: operators, executorch:operators, executorch:models"):
        resolve("zzz")


@pytest.mark.parametrize(
    ("argument", "suite", "case_id"),
    [
        ("operators", "operators", None),
        ("operators/add/rank0", "operators", "operators/add/rank0"),
        ("executorch:operators", "executorch:operators", None),
        (
            "executorch:operators/test_add.py::test_add_dtype[float32]#1",
            "executorch:operators",
            "executorch:operators/test_add.py::test_add_dtype[float32]#1",
        ),
        ("some/where/cases.py", "some/where/cases.py", None),
        ("some/where/cases.py::relu", "some/where/cases.py", "relu"),
    ],
)
def test_arguments_resolve_to_suites_files_and_cases(argument, suite, case_id):
    selected = resolve(argument)
    assert (selected.suite, selected.case_id) == (suite, case_id)
    assert "operators" in SUITES


def write(path, text):
    path.write_text("import torch\nfrom opsuite.cases import Case\n" + text)
    return path


def test_a_file_with_build_is_a_suite_of_one_case_named_after_it(tmp_path):
    path = write(tmp_path / "tiny.py", "def build():\n    return torch.nn.ReLU(), (torch.randn(3),)\n")
    suite = load_file_suite(path)
    assert suite.listing(PORTABLE).case_ids == ("tiny",)
    assert isinstance(suite.case("tiny").instantiate(0, PORTABLE), Built)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n", "defines neither CASES nor build"),
        ("import no_such_module\n", "fails to import: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:\n", "fails to import: SyntaxError"),
        ("raise SystemExit(0)\n", "fails to import: SystemExit: 0"),
        ("CASES = 3\n", "CASES is a int, not a list of cases"),
        ("CASES = ['relu']\n", "CASES holds a str, not a Case"),
        ("CASES = 2 * [Case('relu', torch.nn.ReLU)]\n", "case 'relu' is registered twice"),
    ],
)
def test_what_is_wrong_with_a_case_file_is_named(tmp_path, text, complaint):
    with pytest.raises(OpsuiteError, match=complaint) as refused:
        load_file_suite(write(tmp_path / "wrong.py", text))
    assert "wrong.py" in str(refused.value)


def test_a_missing_case_file_is_named(tmp_path):
    with pytest.raises(OpsuiteError, match=r"no such case file: .*none\.py"):
        find_suite(str(tmp_path / "none.py"))


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        ((torch.relu, (torch.ones(1),)), "returned a builtin_function_or_method, not an nn.Module"),
        ((torch.nn.ReLU(), torch.ones(1)), "returned inputs as a Tensor, not a tuple"),
    ],
)
def test_a_build_that_returns_something_else_is_named(made, complaint):
    with pytest.raises(TypeError, match=complaint):
        Case("odd", lambda: made).instantiate(0, PORTABLE)


def test_dynamic_shapes_of_the_case_reach_what_is_built():
    shapes = ({0: torch.export.Dim("n", max=8)},)
    case = Case("dynamic", lambda: (function_module(torch.abs), (torch.randn(4),)), dynamic_shapes=shapes)
    assert case.instantiate(0, PORTABLE).dynamic_shapes is shapes
