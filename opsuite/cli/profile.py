"""`opsuite profile`: where the time of a case goes, or of a flow over a suite, or of a quantizer."""

from __future__ import annotations

import functools
import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from opsuite.cli import app
from opsuite.exits import Exit, OpsuiteError

if TYPE_CHECKING:
    from opsuite.cases import Case
    from opsuite.profiling.quantizer import Call, Model
    from opsuite.profiling.stages import Profile

_NARROWEST = 120
"""Columns that a table may use where there is no terminal."""


class QuantizerName(str, Enum):
    """Whose quantizer is profiled."""

    opsuite = "opsuite"
    executorch = "executorch"
    executorch_cache = "executorch+cache"


@app.command()
def profile(
    what: Annotated[
        str,
        typer.Argument(metavar="CASE", help="A case, a suite, or module:callable returning (module, inputs)."),
    ],
    flow: Annotated[str, typer.Option("--flow", "-f", help="Flow.")] = "coreml_static_int8",
    quantizer: Annotated[
        Optional[QuantizerName],  # noqa: UP045  (typer reads the annotation at run time on Python 3.10)
        typer.Option(help="Profile consecutive prepare_pt2e calls of this quantizer instead of the stages."),
    ] = None,
    calls: Annotated[int, typer.Option(min=1, help="Calls of prepare_pt2e, before one with a second model.")] = 5,
    warm: Annotated[
        bool, typer.Option(help="Run the first case once before the clock starts, as a worker has.")
    ] = True,
    accelerated: Annotated[bool, typer.Option(help="Apply opsuite.accelerate() first, as a worker does.")] = True,
    trace: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write the call stacks as a speedscope file (needs opsuite[profile])."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Profile a case, or a flow over all cases of a suite: seconds and shares of the stages.

    With --quantizer, the pattern builds of consecutive prepare_pt2e calls in one process: of a case CALLS times and
    then of a second model; of a suite, of each case once.

    Examples:

        opsuite profile operators/conv2d/batch_norm_relu

        opsuite profile operators --flow coreml

        opsuite profile operators/conv2d/plain --quantizer executorch

        opsuite profile mymodels:resnet --flow coreml --trace stacks.speedscope.json
    """
    from opsuite.output import quiet
    from opsuite.profiling.trace import require_tracer

    if trace is not None:
        require_tracer()
    suite, cases = _selected(what, flow)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=max(console.width, _NARROWEST))
    if quantizer is not None:
        with quiet():
            made = _quantizer_calls(cases, flow, quantizer.value, calls, seed, trace)
        if as_json:
            print(json.dumps({"quantizer": quantizer.value, "calls": [call.to_json() for call in made]}, indent=1))
        else:
            console.print(_calls_table(made))
            console.print(_builds_line(quantizer.value, made), soft_wrap=True)
        return int(Exit.OK)
    with quiet():
        found = _stages(cases, suite, flow, seed, warm, accelerated, trace)
    if as_json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        console.print(_steps_table(found))
        console.print(f"{what}, {flow}: {found.outcome_counts()}, {found.total:.3f} s")
    return int(Exit.OK)


def _selected(what: str, flow: str) -> tuple[str, list[Case]]:
    """The name of the suite, and its cases that are meant."""
    from opsuite.cases import find_suite, resolve
    from opsuite.flows import FLOWS
    from opsuite.profiling.stages import case_from_callable

    if ":" in what and not what.startswith("executorch:") and ".py::" not in what:
        return "profile", [case_from_callable(what)]
    selected = resolve(what)
    suite = find_suite(selected.suite)
    if selected.case_id is not None:
        return selected.suite, [suite.case(selected.case_id)]
    cases = [suite.case(case_id) for case_id in suite.listing(FLOWS.get(flow)).case_ids]
    if not cases:
        raise OpsuiteError(f"suite {what} has no case in flow {flow}", Exit.NOTHING_SELECTED)
    return selected.suite, cases


def _stages(
    cases: list[Case], suite: str, flow_name: str, seed: int, warm: bool, accelerated: bool, trace: Path | None
) -> Profile:
    from opsuite.accelerate import accelerate
    from opsuite.flows import FLOWS
    from opsuite.pipeline.pipeline import Request, run_case
    from opsuite.profiling.stages import Profile
    from opsuite.profiling.trace import traced

    flow = FLOWS.get(flow_name).require()
    if accelerated:
        accelerate()
    if warm:
        run_case(cases[0], flow, Request(suite, seed))
    with traced(trace):
        records = [run_case(case, flow, Request(suite, seed)) for case in cases]
    return Profile(tuple(records))


def _quantizer_calls(
    cases: list[Case], flow_name: str, quantizer: str, calls: int, seed: int, trace: Path | None
) -> list[Call]:
    from opsuite.flows import FLOWS
    from opsuite.profiling.quantizer import SECOND_MODEL, profile_quantizer
    from opsuite.profiling.trace import traced

    flow = FLOWS.get(flow_name)

    def build(case: Case) -> tuple[Any, tuple[Any, ...]]:
        built = case.instantiate(seed, flow)
        return built.module, built.inputs

    models: list[Model] = [(case.id, functools.partial(build, case)) for case in cases]
    if len(cases) == 1:
        models = [*models * calls, SECOND_MODEL]
    with traced(trace):
        return profile_quantizer(quantizer, models)


def _steps_table(found: Profile) -> Table:
    table = Table("stage", box=None, pad_edge=False, header_style="bold")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for row in found.steps():
        name = "  " + row.step.partition(".")[2] if "." in row.step else row.step
        style = "dim" if "." in row.step else ""
        table.add_row(name, f"{row.seconds:.4f}", f"{row.share:.1f} %", style=style)
    return table


def _calls_table(rows: list[Call]) -> Table:
    table = Table("call", "model", box=None, pad_edge=False, header_style="bold")
    for column in ("prepare s", "builds", "in builds s", "mean build s", "distinct", "new"):
        table.add_column(column, justify="right", no_wrap=True)
    for number, row in enumerate(rows, start=1):
        mean = row.mean_build_seconds
        table.add_row(
            str(number),
            row.model,
            f"{row.seconds:.4f}",
            str(row.builds),
            f"{row.build_seconds:.3f}",
            "-" if mean is None else f"{mean:.4f}",
            str(row.distinct),
            str(row.new),
        )
    return table


def _builds_line(quantizer: str, rows: list[Call]) -> str:
    builds, distinct = sum(row.builds for row in rows), sum(row.new for row in rows)
    seconds, in_builds = sum(row.seconds for row in rows), sum(row.build_seconds for row in rows)
    share = f", {100 * in_builds / seconds:.1f} % of the time" if builds else ""
    return (
        f"{quantizer}: {builds} pattern builds in {len(rows)} calls, {distinct} distinct by arguments{share}; "
        f"first call {rows[0].seconds:.3f} s, last {rows[-1].seconds:.3f} s"
    )
