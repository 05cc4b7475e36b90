import shutil
import signal

import pytest

from opsuite.exits import Exit
from opsuite.results.store import DAMAGED, RECORDS, load_plan, load_records

FLOW = ("--flow", "portable")


@pytest.fixture(scope="session")
def unbroken(command, inputs, tmp_path_factory):
    """A run of one worker to its end."""
    path = tmp_path_factory.mktemp("unbroken") / "run"
    assert command("run", inputs / "steady.py", *FLOW, "--jobs", "1", "-o", path).code == Exit.OK
    return path


def records_so_far(path):
    return load_records(path / RECORDS).records


def some_but_not_all(path):
    return (path / RECORDS).exists() and 0 < len(records_so_far(path)) < len(load_plan(path).items)


def test_a_killed_run_resumes_to_the_records_of_an_unbroken_one(
    unbroken, start, command, inputs, tmp_path, eventually, processes_with, records, verdicts
):
    run = tmp_path / "run"
    process = start("run", inputs / "steady.py", *FLOW, "--jobs", "2", "-o", run, OPSUITE_SCRATCH=str(tmp_path))
    eventually(lambda: process.poll() is not None or some_but_not_all(run))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    eventually(lambda: processes_with(tmp_path) == [])
    kept = {record.id: record for record in records_so_far(run)}
    assert 0 < len(kept) < len(load_plan(run).items)
    resumed = command("run", "--resume", run, "--jobs", "2")
    assert (resumed.code, resumed.err) == (Exit.OK, "")
    assert f"{len(kept)} of {len(load_plan(run).items)} cases have a record" in resumed.out
    # Two workers against one, and a broken run against an unbroken one.
    assert verdicts(run) == verdicts(unbroken)
    assert any(output["against_float"]["max_abs"] > 0 for v in verdicts(run).values() for output in v["accuracy"])
    # What had ended was not run again.
    assert {case_id: record for case_id, record in records(run).items() if case_id in kept} == kept


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_a_summary_and_how_to_go_on(
    start, cli, inputs, tmp_path, eventually, processes_with, number
):
    run = tmp_path / "run"
    process = start("run", inputs / "steady.py", *FLOW, "--jobs", "1", "-o", run, OPSUITE_SCRATCH=str(tmp_path))
    eventually(lambda: process.poll() is not None or some_but_not_all(run))
    # Meanwhile the directory is taken.
    cli("run", inputs / "steady.py", *FLOW, "-o", run).assert_one_line_error(Exit.USAGE, "another run is writing")
    cli("run", "--resume", run).assert_one_line_error(Exit.USAGE, "another run is writing")
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == Exit.INCOMPLETE
    assert err == ""
    done, planned = len(records_so_far(run)), len(load_plan(run).items)
    assert 0 < done < planned
    assert f"{planned - done}  not_run" in out
    assert f"{done}  pass" in out
    assert f"interrupted; go on with: opsuite run --resume {run}" in out
    eventually(lambda: processes_with(tmp_path) == [])


def test_a_damaged_run_resumes_with_what_is_whole(unbroken, command, tmp_path, verdicts):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    lines = (run / RECORDS).read_bytes().splitlines(keepends=True)
    cut = lines[-1][:-9]
    (run / RECORDS).write_bytes(b"".join([lines[0], b"\xff\x00\r{\n", *lines[2:-1], cut]))
    resumed = command("run", "--resume", run, "--jobs", "1")
    assert (resumed.code, resumed.err) == (Exit.OK, "")
    assert f"kept {len(lines) - 2} whole records, dropped 2 damaged lines (2, {len(lines)};" in resumed.out.replace(
        "\n", " "
    )
    assert verdicts(run) == verdicts(unbroken)
    assert (run / DAMAGED).read_bytes() == b"\xff\x00\r{\n" + cut


def test_a_finished_run_resumes_to_its_summary(unbroken, cli):
    before = (unbroken / RECORDS).read_bytes()
    ended = cli("run", "--resume", unbroken)
    planned = len(load_plan(unbroken).items)
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert f"{planned} of {planned} cases have a record" in ended.out.replace("\n", " ")
    assert (unbroken / RECORDS).read_bytes() == before
