import os
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from opsuite.exits import Exit
from opsuite.output import LOG_LIMIT
from opsuite.results.store import load_plan

EXPECTED = {
    "fine/first": "pass",
    "segfault": "crash",
    "exit/0": "crash",
    "exit/3": "crash",
    "sys_exit": "skip:eager",
    "interrupt": "crash",
    "hang": "timeout",
    "memory": "crash",
    "printer": "timeout",
    "undecodable": "skip:eager",
    "native_crash": "crash",
    "fine/last": "pass",
}
MARK_LIMIT = 100
"""More than the bytes of the line that says how much of a log was left out."""


@dataclass(frozen=True)
class Planted:
    path: Path
    scratch: Path
    ended: object


def run_planted(command, inputs, directory, jobs):
    run, scratch = directory / "run", directory / "scratch"
    scratch.mkdir()
    # Long enough for a case on a busy machine; two of the cases wait for it. A worker holds about half a GiB.
    limits = ("--timeout", "12", "--memory-limit", "1.5")
    arguments = ("run", inputs / "planted.py", "--flow", "portable", "--jobs", jobs, *limits, "-o", run)
    return Planted(run, scratch, command(*arguments, OPSUITE_SCRATCH=str(scratch)))


@pytest.fixture(scope="session")
def planted(command, inputs, tmp_path_factory):
    return run_planted(command, inputs, tmp_path_factory.mktemp("planted"), 2)


def log_of(planted, records, case_id):
    return (planted.path / records(planted.path)[case_id].log).read_bytes()


def test_each_planted_case_costs_itself_alone(planted, records):
    assert {case_id: record.outcome for case_id, record in records(planted.path).items()} == EXPECTED
    assert planted.ended.code == Exit.FAILURES
    assert planted.ended.err == ""


@pytest.mark.parametrize(
    ("case_id", "kind", "words"),
    [
        ("segfault", "Crash", ["was killed by SIGSEGV", "in stage eager"]),
        ("exit/0", "Crash", ["exited with code 0", "in stage eager"]),
        ("exit/3", "Crash", ["exited with code 3", "in stage eager"]),
        ("interrupt", "KeyboardInterrupt", ["in stage eager"]),
        ("hang", "Timeout", ["over its 12 s", "in stage eager"]),
        ("memory", "MemoryLimit", ["over its 1.5 GiB", "in stage eager"]),
        ("printer", "Timeout", ["over its 12 s", "in stage eager"]),
        ("native_crash", "Crash", ["was killed by SIGSEGV", "in stage execute"]),
        ("undecodable", "ValueError", ["caf\\udce9"]),
    ],
)
def test_the_record_tells_what_became_of_the_case(planted, records, case_id, kind, words):
    record = records(planted.path)[case_id]
    assert record.error.type == kind
    for word in words:
        assert word in record.error.message
    if kind in ("Crash", "Timeout", "MemoryLimit"):
        assert f"process {record.worker}" in record.error.message
        assert not psutil.pid_exists(record.worker)


@pytest.mark.parametrize(
    ("case_id", "printed"),
    [
        ("segfault", b"printed before the fault\n"),
        ("exit/0", b"printed before os._exit(0)\n"),
        ("exit/3", b"printed before os._exit(3)\n"),
        ("hang", b"printed before the hang\n"),
        ("memory", b"printed before the memory ran out\n"),
        ("printer", b"the first line\n"),
        ("native_crash", b"native words before the fault\n"),
        ("sys_exit", b"SystemExit: 0\n"),
    ],
)
def test_the_log_keeps_what_the_case_printed(planted, records, case_id, printed):
    assert printed in log_of(planted, records, case_id)


def test_a_hang_and_a_crash_leave_a_stack(planted, records):
    assert b"in hang\n" in log_of(planted, records, "hang")
    assert b"Segmentation fault" in log_of(planted, records, "segfault")
    assert b"Segmentation fault" in log_of(planted, records, "native_crash")


def test_an_endless_log_is_capped_between_its_beginning_and_its_end(planted, records):
    log = log_of(planted, records, "printer")
    assert len(log) <= LOG_LIMIT + MARK_LIMIT
    assert log.startswith(b"the first line\n")
    assert b" bytes left out ...]" in log


@pytest.mark.parametrize("name", ["child", "daemon"])
def test_processes_that_a_hanging_case_started_are_gone(planted, name):
    # The daemon is in a session, and so in a process group, of its own.
    assert not psutil.pid_exists(int((planted.scratch / name).read_text()))


def test_nothing_that_the_run_started_lives_on(planted, processes_with, eventually):
    eventually(lambda: processes_with(planted.scratch) == [])


def test_every_case_has_the_one_record_that_was_planned(planted, records):
    assert {item.id for item in load_plan(planted.path).items} == records(planted.path).keys()


def test_the_summary_counts_groups_and_repeats(planted):
    out = planted.ended.out
    for words in ("6  crash", "2  timeout", "2  pass", "2  skip:eager", "failures by message", "slowest 10"):
        assert words in out
    # The first failure in the order of the records, by its file and ID.
    assert "repeat the first failure:  opsuite run " in out
    assert f"planted.py::{next(c for c in EXPECTED if EXPECTED[c] in ('crash', 'timeout'))} --flow portable" in out


def test_output_that_is_not_for_a_terminal_has_no_control_characters(planted):
    assert planted.ended.out.replace("\n", "").isprintable()


@pytest.mark.slow
def test_one_worker_gives_the_verdicts_of_two(planted, command, inputs, tmp_path, verdicts):
    alone = run_planted(command, inputs, tmp_path, 1)
    assert alone.ended.code == Exit.FAILURES
    assert verdicts(alone.path) == verdicts(planted.path)


def test_a_printed_command_repeats_a_case(planted, command, inputs, tmp_path, verdicts):
    from opsuite.reports.repeat import repeat_command
    from opsuite.results.store import RECORDS, load_records

    record = next(r for r in load_records(planted.path / RECORDS).records if r.id == "fine/last")
    words = repeat_command(record).split()
    assert words[0] == "opsuite"
    ended = command(*words[1:], "-o", tmp_path / "again", OPSUITE_SCRATCH=os.devnull)
    assert ended.code == Exit.OK
    assert verdicts(tmp_path / "again") == {"fine/last": verdicts(planted.path)["fine/last"]}
