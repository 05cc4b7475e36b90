import pytest

from opsuite.engine.plan import make_plan
from opsuite.exits import Exit, OpsuiteError


def ids(plan):
    return [(item.flow, item.id) for item in plan.items]


def test_every_flow_takes_every_case_once():
    plan = make_plan(["operators", "operators/add/alpha@2"], ["portable", "coreml", "portable"], "alpha")
    wanted = ["operators/add/alpha@2", "operators/sub/alpha@3"]
    assert ids(plan) == [(flow, case_id) for flow in ("portable", "coreml") for case_id in wanted]


def test_single_cases_keep_the_order_they_were_asked_in():
    plan = make_plan(["operators/sub/alpha@3", "operators/add/alpha@2"], ["portable"])
    assert [item.id for item in plan.items] == ["operators/sub/alpha@3", "operators/add/alpha@2"]


def test_a_suite_that_names_its_sources_is_reconciled():
    (row,) = make_plan(["executorch:operators"], ["coreml_static_int8"], "test_add").reconciliation
    assert row.tests == 467
    assert row.cases > 850
    assert 0 < row.selected < row.cases


def test_a_case_that_two_suites_have_is_refused(tmp_path):
    text = "from opsuite.cases import Case\nCASES = [Case('same', lambda: None)]\n"
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path in paths:
        path.write_text(text)
    with pytest.raises(OpsuiteError, match=r"'same' is in .*one.py and in .*two.py"):
        make_plan(list(map(str, paths)), ["portable"])


def test_nothing_selected_has_its_own_code():
    with pytest.raises(OpsuiteError, match="no case selected from operators with -k 'add and sub'") as error:
        make_plan(["operators"], ["portable"], "add and sub")
    assert error.value.code is Exit.NOTHING_SELECTED
