import io

import pytest
from rich.console import Console

from opsuite.reports.progress import Progress, time_text
from opsuite.reports.repeat import repeat_command
from opsuite.reports.terminal import print_summary
from opsuite.results.record import ErrorInfo, Record
from opsuite.results.store import Plan, PlanItem, Reconciliation


def record(case_id, outcome="pass", message="", flow="portable", suite="operators", **more):
    error = ErrorInfo(type="ValueError", message=message) if message else None
    return Record(
        id=case_id, suite=suite, flow=flow, outcome=outcome, error=error, seed=0, environment="0" * 12, **more
    )


def planned(records, **more):
    items = [PlanItem(id=each.id, suite=each.suite, flow=each.flow) for each in records]
    return Plan(created="2026-01-01T00:00:00+00:00", seed=0, runtime="auto", environment={}, items=items, **more)


def shown(plan, records, **options):
    console = Console(file=io.StringIO(), width=100, color_system=None, **options)
    print_summary(console, plan, records, "runs/one", 61.0)
    return console.file.getvalue()


def test_what_a_case_says_is_shown_as_it_is():
    failed = record("operators/a[bold]b[/bold]", "fail:lower", "dtype [red]int8[/red] at [3]")
    text = shown(planned([failed]), [failed])
    assert "operators/a[bold]b[/bold]" in text
    assert "dtype [red]int8[/red] at [3]" in text


def test_failures_with_one_message_are_listed_together_and_the_longest_list_is_cut():
    failed = [record(f"c/{number}", "fail:lower", "no such op") for number in range(5)]
    text = shown(planned(failed), failed)
    assert "5  fail:lower  ValueError: no such op" in text
    assert "c/2" in text
    assert "c/3\n" not in text.partition("slowest")[0]
    assert "and 2 more" in text


def test_flows_are_told_apart():
    records = [record("c", flow="coreml"), record("c", "unverified", flow="portable")]
    text = shown(planned(records), records)
    first, second = text.index("coreml: 1 cases"), text.index("portable: 1 cases")
    assert "1  pass" in text[first:second]
    assert "1  unverified" in text[second:]
    assert "not a pass" in text[second:]


def test_tests_of_a_suite_are_counted_through_their_cases():
    records = [record("executorch:operators/t.py::one#1"), record("executorch:operators/t.py::one#2", "crash", "died")]
    records += [record("executorch:operators/t.py::two", "skip:case", "needs a moon")]
    for each in records:
        each.suite = "executorch:operators"
    row = Reconciliation(suite="executorch:operators", flow="portable", tests=2, cases=3, selected=3)
    text = shown(planned(records, reconciliation=[row]), records)
    assert "executorch:operators in portable: 2 of 2 tests have a result: 3 of 3 cases, 1 of them skipped" in (
        text.replace("\n", " ")
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599.6, "1 h 00 min"), (3725, "1 h 02 min")],
)
def test_seconds_are_rounded_once(seconds, text):
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        ("operators", "opsuite run 'a b' --flow portable --seed 0"),
        ("my dir/mine.py", "opsuite run 'my dir/mine.py::a b' --flow portable --seed 0"),
    ],
)
def test_the_command_that_repeats_a_case_can_be_pasted(suite, words):
    assert repeat_command(record("a b", suite=suite)) == words


def test_off_a_terminal_every_case_is_a_line():
    console = Console(file=io.StringIO(), width=40, force_terminal=False)
    with Progress(console, total=12) as progress:
        progress.finished(record("x" * 60, "skip:eager"))
        progress.finished(record("y", "pass", seconds={"lower": 1.5, "lower.a": 1.0}))
    first, second = console.file.getvalue().splitlines()
    assert first == f"[ 1/12] {'skip:eager':<14}    0.0 s  portable  {'x' * 60}"
    assert second == f"[ 2/12] {'pass':<14}    1.5 s  portable  y"


def test_on_a_terminal_only_failures_stay():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard", no_color=False)
    with Progress(console, total=2) as progress:
        progress.finished(record("fine"))
        progress.finished(record("broken", "fail:lower"))
    text = console.file.getvalue()
    assert "broken" in text
    assert "fine" not in text


def test_what_is_left_is_told_by_the_pace_of_this_run_alone(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("opsuite.reports.progress.time.monotonic", lambda: now[0])
    progress = Progress(Console(file=io.StringIO()), total=10, done=4)
    assert progress.left() is None
    now[0] += 6
    progress.finished(record("a"))
    progress.finished(record("b"))
    assert progress.left() == pytest.approx(12.0)
