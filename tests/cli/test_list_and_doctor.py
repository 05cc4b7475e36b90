import json

import pytest

from opsuite.cases import SUITES
from opsuite.exits import Exit
from opsuite.flows import FLOWS


def test_a_piped_list_is_one_case_a_line(command):
    ended = command("list", "operators")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert ended.out.splitlines() == list(SUITES.get("operators").listing(FLOWS.get("portable")).case_ids)


def test_a_listed_line_can_be_run(cli, tmp_path):
    ended = cli("list", "operators", "-k", "conv1d and plain")
    (case_id,) = ended.out.splitlines()
    assert cli("list", case_id).out == ended.out


def test_json_names_each_cases_suite(cli):
    rows = json.loads(cli("list", "operators", "--json", "-k", "rank0").out)
    assert rows == [{"id": f"operators/{op}/rank0", "suite": "operators"} for op in ("add", "mul")]


def test_suites_that_cannot_be_listed_here_are_named_and_left_out(cli, monkeypatch):
    monkeypatch.setattr(SUITES.get("executorch:models"), "_needs_one_of", ("no_such_module",))
    SUITES.get("executorch:models").__dict__.pop("tests", None)
    ended = cli("list", "-k", "test_add_dtype or operators/add")
    assert ended.code == Exit.OK
    assert ended.err == (
        "opsuite: left out: suite executorch:models needs no_such_module: pip install 'opsuite[models]'\n"
    )
    assert "operators/add/rank0" in ended.out.splitlines()
    cli("list", "executorch:models").assert_one_line_error(Exit.ENVIRONMENT, "executorch:models", "pip install")


def test_doctor_tells_each_flow_and_why_not(command):
    ended = command("doctor", "--json")
    assert (ended.code, ended.err) == (Exit.OK, "")
    found = json.loads(ended.out)
    flows = {row["name"]: row for row in found["flows"]}
    assert flows["portable"]["unavailable"] is None and flows["portable"]["executes"]
    assert flows["coreml_static_int8"]["unavailable"] is None
    assert "install" in flows["qnn"]["unavailable"]
    assert found["environment"]["executorch"].startswith("1.5.")
    assert "XnnpackBackend" in found["backends"]
    parts = {part["name"]: part for part in found["accelerate"]}
    assert parts["coreml-quantizer"]["state"] == "available"
    assert "cannot be imported" in parts["coremltools-quantizer"]["reason"]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"]])
def test_help_is_help(cli, arguments):
    ended = cli(*arguments)
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert "Usage: " in ended.out
