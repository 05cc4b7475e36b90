"""`opsuite run`: cases through flows, to a run directory and a summary."""

from __future__ import annotations

import datetime
import math
import re
import signal
import time
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from opsuite.cli import app
from opsuite.cli.options import Runtime, SuiteArgument
from opsuite.exits import Exit, OpsuiteError
from opsuite.results.store import Plan, RunDirectory, load_plan

LIMITS, WHAT, RESULTS = "Limits", "What to run", "Results"


@app.command()
def run(
    suites: SuiteArgument = None,
    flow: Annotated[
        Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time on Python 3.10)
        typer.Option(
            "--flow", "-f", help="Flow; may be given several times. Default: coreml_static_int8.", rich_help_panel=WHAT
        ),
    ] = None,
    k: Annotated[
        str,
        typer.Option(
            "-k",
            metavar="EXPR",
            help="Only cases whose ID matches, e.g. 'conv2d and not stride'.",
            rich_help_panel=WHAT,
        ),
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the run; each case's own follows from it. Default: 0.", rich_help_panel=WHAT),
    ] = None,
    runtime: Annotated[
        Optional[Runtime],  # noqa: UP045
        typer.Option(help="What may execute lowered programs. Default: auto.", rich_help_panel=WHAT),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Worker processes. Default: one a core.", rich_help_panel=LIMITS),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a case may take.", rich_help_panel=LIMITS)
    ] = 600.0,
    memory_limit: Annotated[
        float, typer.Option(min=0.1, help="GiB that a case may hold resident.", rich_help_panel=LIMITS)
    ] = 8.0,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--output", "-o", help="Run directory; new or empty. Default: opsuite-runs/<time>.", rich_help_panel=RESULTS
        ),
    ] = None,
    resume: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Go on with an unfinished run directory.", rich_help_panel=RESULTS),
    ] = None,
) -> int:
    """Run cases through flows.

    SUITES are suites (see opsuite list), cases by ID, or Python files with CASES or build(). Default: operators.

    Examples:

        opsuite run executorch:operators --flow xnnpack -k conv2d

        opsuite run 'executorch:operators/test_add.py::test_add_f32_alpha#1' --flow coreml

        opsuite run --resume opsuite-runs/20261130-220735
    """
    console = Console()
    asked = _Asked(suites, flow, k, seed, runtime)
    for option, value in (("--timeout", timeout), ("--memory-limit", memory_limit)):
        if not math.isfinite(value):
            raise OpsuiteError(f"{option} {value} is not a finite number")
    if resume is not None and output is not None:
        raise OpsuiteError("--resume goes on in its own directory: leave out -o")
    directory = _resume(resume, asked, console) if resume else _create(output, asked)
    return _execute(directory, jobs, timeout, memory_limit, console)


class _Asked:
    """What the command line asks to be planned; None where it leaves a choice to the default, or to the plan."""

    def __init__(
        self, suites: list[str] | None, flows: list[str] | None, k: str, seed: int | None, runtime: Runtime | None
    ) -> None:
        self.suites, self.flows, self.k, self.seed, self.runtime = suites, flows, k, seed, runtime

    def plan(self) -> Plan:
        from opsuite.engine.plan import DEFAULT_FLOW, DEFAULT_SUITE, make_plan

        return make_plan(
            self.suites or [DEFAULT_SUITE],
            self.flows or [DEFAULT_FLOW],
            self.k,
            self.seed or 0,
            self.runtime.value if self.runtime else "auto",
        )

    def check(self, planned: Plan, path: Path) -> None:
        """Raises OpsuiteError where the environment, or anything that was asked for, is not what was planned."""
        from opsuite.engine.plan import make_plan
        from opsuite.environment import environment

        items = planned.items
        if self.suites or self.flows or self.k:
            suites = self.suites or list(dict.fromkeys(item.suite for item in items))
            flows = self.flows or list(dict.fromkeys(item.flow for item in items))
            items = make_plan(suites, flows, self.k).items
        wanted = planned.model_copy(
            update={
                "seed": planned.seed if self.seed is None else self.seed,
                "runtime": self.runtime.value if self.runtime else planned.runtime,
                "environment": environment(),
                "items": items,
            }
        )
        difference = wanted.difference(planned)
        if difference is not None:
            raise OpsuiteError(f"{path} was planned otherwise: {difference}; start a new run without --resume")


def _create(output: Path | None, asked: _Asked) -> RunDirectory:
    plan = asked.plan()
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    flows = "+".join(dict.fromkeys(item.flow for item in plan.items))
    name = re.sub(r"[^A-Za-z0-9+_-]+", "-", f"{stamp}-{flows}")[:80]
    return RunDirectory.create(output or Path("opsuite-runs") / name, plan)


def _resume(path: Path, asked: _Asked, console: Console) -> RunDirectory:
    asked.check(load_plan(path), path)
    directory = RunDirectory.resume(path)
    if directory.damaged:
        numbers = ", ".join(map(str, directory.damaged[:5])) + (", ..." if len(directory.damaged) > 5 else "")
        console.print(
            f"records.jsonl: kept {len(directory.records)} whole records, dropped {len(directory.damaged)} damaged "
            f"lines ({numbers}; now in records.damaged): their cases run again",
            style="yellow",
        )
    console.print(
        f"{path}: {len(directory.records)} of {len(directory.plan.items)} cases have a record", soft_wrap=True
    )
    return directory


def _execute(directory: RunDirectory, jobs: int | None, timeout: float, memory: float, console: Console) -> int:
    import os

    from opsuite.engine.local import Limits, run_items
    from opsuite.engine.plan import planned_flows
    from opsuite.reports.progress import Progress
    from opsuite.reports.terminal import print_summary
    from opsuite.results.summary import summarize

    begun = time.monotonic()
    interrupted = False
    with directory:
        planned_flows(directory.plan)
        jobs = jobs or os.cpu_count() or 1
        console.print(
            f"{len(directory.remaining)} cases, {jobs} workers, seed {directory.plan.seed}, into {directory.path}",
            soft_wrap=True,
        )
        previous = signal.signal(signal.SIGTERM, _interrupt)
        try:
            with Progress(console, len(directory.plan.items), len(directory.records)) as progress:
                limits = Limits(timeout, int(memory * 2**30))
                run_items(directory, jobs, limits, progress)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            signal.signal(signal.SIGTERM, previous)
        print_summary(console, directory.plan, directory.records, str(directory.path), time.monotonic() - begun)
        if interrupted:
            console.print(
                f"interrupted; go on with: opsuite run --resume {directory.path}", style="yellow", soft_wrap=True
            )
        summary = summarize(directory.plan.items, directory.records)
        code = summary.exit_code
        if code is Exit.OK and directory.plan.runtime == "native" and summary.outcomes["unverified"]:
            # --runtime native asks for a verdict of the backend itself, and it has not been given.
            code = Exit.ENVIRONMENT
        return int(code)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
