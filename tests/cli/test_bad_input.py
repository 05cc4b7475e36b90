"""What a user gets wrong: one line that names it, the exit code of its kind, and nothing written."""

import json

import pytest

from opsuite.exits import Exit
from opsuite.results.store import PLAN, RECORDS


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "no_such_suite"], Exit.USAGE, ["no_such_suite"]),
        (["run", "executorch:operator"], Exit.USAGE, ["executorch:operator", "executorch:operators"]),
        (["run", "--flow", "coreml_static_int"], Exit.USAGE, ["coreml_static_int", "coreml_static_int8"]),
        (["run", "operators/conv2d/nope"], Exit.USAGE, ["operators/conv2d/nope"]),
        (["run", "--jobs", "0"], Exit.USAGE, ["--jobs", "greater than or equal to 1"]),
        (["run", "--jobs", "two"], Exit.USAGE, ["--jobs", "integer"]),
        (["run", "--timeout", "0"], Exit.USAGE, ["--timeout", "0"]),
        (["run", "--timeout", "nan"], Exit.USAGE, ["--timeout"]),
        (["run", "--memory-limit", "inf"], Exit.USAGE, ["--memory-limit", "inf"]),
        (["run", "--seed", "-1"], Exit.USAGE, ["--seed", "greater than or equal to 0"]),
        (["run", "--runtime", "gpu"], Exit.USAGE, ["--runtime", "gpu", "native"]),
        (["run", "--no-such-option"], Exit.USAGE, ["--no-such-option"]),
        (["run", "-k", "conv2d and"], Exit.USAGE, ["-k", "conv2d and"]),
        (["run", "-k", "no_such_case"], Exit.NOTHING_SELECTED, ["no_such_case"]),
        (["list", "operators", "-k", "no_such_case"], Exit.NOTHING_SELECTED, ["no case selected"]),
        (["list", "no_such_suite"], Exit.USAGE, ["no_such_suite"]),
        (["rum"], Exit.USAGE, ["rum"]),
    ],
)
def test_a_wrong_word_is_named(cli, tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    cli(*arguments).assert_one_line_error(code, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_flow_that_is_not_available_names_what_to_install(command, tmp_path):
    ended = command("run", "--flow", "qnn", "-o", tmp_path / "run")
    ended.assert_one_line_error(Exit.ENVIRONMENT, "qnn", "install")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module", ["no_such_module"]),
        ("def broken(:", ["SyntaxError", "line 1"]),
        ("x = 1", ["CASES"]),
        ("raise SystemExit(0)", ["SystemExit"]),
        ("CASES = 3", ["CASES"]),
    ],
)
def test_a_case_file_that_cannot_be_used_is_named(cli, tmp_path, text, words):
    path = tmp_path / "mine.py"
    path.write_text(text)
    cli("run", path, "-o", tmp_path / "run").assert_one_line_error(Exit.USAGE, "mine.py", *words)
    assert not (tmp_path / "run").exists()


def test_a_missing_case_file_is_named(cli, tmp_path):
    cli("run", tmp_path / "nope.py").assert_one_line_error(Exit.USAGE, "nope.py")


@pytest.mark.parametrize("kind", ["file", "other files", "another run"])
def test_an_output_directory_that_is_taken_is_left_alone(cli, tmp_path, kind):
    path = tmp_path / "taken"
    if kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / ("notes.txt" if kind == "other files" else PLAN)).write_text("mine")
    before = {each: each.read_text() for each in [path, *tmp_path.rglob("*")] if each.is_file()}
    cli("run", "-k", "conv1d", "--flow", "portable", "-o", path).assert_one_line_error(Exit.USAGE, str(path))
    assert {each: each.read_text() for each in [path, *tmp_path.rglob("*")] if each.is_file()} == before


def test_an_output_directory_that_cannot_be_made_is_named(cli, tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "run"
    cli("run", "-k", "conv1d", "--flow", "portable", "-o", path).assert_one_line_error(Exit.USAGE, str(path))


@pytest.fixture
def planned(command, tmp_path, inputs):
    """A run directory of one finished case."""
    path = tmp_path / "run"
    assert command("run", "operators/conv1d/grouped_dilated_strided", "--flow", "portable", "-o", path).code == Exit.OK
    return path


def test_what_cannot_be_resumed_is_named(cli, planned, tmp_path):
    cli("run", "--resume", tmp_path / "nope").assert_one_line_error(Exit.USAGE, "nope")
    cli("run", "--resume", planned, "-o", tmp_path / "new").assert_one_line_error(Exit.USAGE, "--resume", "-o")
    for other in (["--flow", "xnnpack"], ["--seed", "3"], ["-k", "add"], ["--runtime", "none"]):
        cli("run", "--resume", planned, *other).assert_one_line_error(Exit.USAGE, "planned otherwise")
    records = (planned / RECORDS).read_text()
    line = json.loads(records)
    line["schema_version"] = "99.0"
    (planned / RECORDS).write_text(json.dumps(line) + "\n")
    cli("run", "--resume", planned).assert_one_line_error(Exit.USAGE, "99.0")
    assert (planned / RECORDS).read_text() == json.dumps(line) + "\n"
    (planned / PLAN).write_text("{")
    cli("run", "--resume", planned).assert_one_line_error(Exit.USAGE, PLAN)
