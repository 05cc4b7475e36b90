"""`opsuite profile`: where the time of a case goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from opsuite.cli import app
from opsuite.exits import Exit, OpsuiteError


class QuantizerName(str, Enum):
    """Whose quantizer is profiled."""

    opsuite = "opsuite"
    executorch = "executorch"
    executorch_cache = "executorch+cache"


@app.command()
def profile(
    case: Annotated[str, typer.Argument(help="A case's ID, or module:callable returning (module, inputs).")],
    flow: Annotated[str, typer.Option("--flow", "-f", help="Flow.")] = "coreml_static_int8",
    quantizer: Annotated[
        Optional[QuantizerName],  # noqa: UP045  (typer reads the annotation at run time on Python 3.10)
        typer.Option(help="Profile consecutive prepare_pt2e calls of this quantizer instead of the stages."),
    ] = None,
    calls: Annotated[int, typer.Option(min=1, help="Calls of prepare_pt2e, before one with a second model.")] = 5,
    warm: Annotated[bool, typer.Option(help="Run the case once before it is profiled, as a worker has.")] = True,
    accelerated: Annotated[bool, typer.Option(help="Apply opsuite.accelerate() first, as a worker does.")] = True,
    trace: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write the call stacks as a speedscope file (needs opsuite[profile])."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Profile a case: seconds and shares of its stages, or the pattern builds of a quantizer.

    Examples:

        opsuite profile operators/conv2d/batch_norm_relu

        opsuite profile operators/conv2d/plain --quantizer executorch

        opsuite profile mymodels:resnet --flow coreml --trace stacks.speedscope.json
    """
    from opsuite.cases import find_suite, resolve
    from opsuite.output import quiet
    from opsuite.profiling.stages import case_from_callable

    if ":" in case and not case.startswith("executorch:") and ".py::" not in case:
        chosen, suite = case_from_callable(case), "profile"
    else:
        selected = resolve(case)
        if selected.case_id is None:
            raise OpsuiteError(f"{case!r} is a suite: name one case of it (opsuite list {case})")
        chosen, suite = find_suite(selected.suite).case(selected.case_id), selected.suite
    with _traced(trace), quiet():
        if quantizer is not None:
            found: Any = _quantizer_calls(chosen, flow, quantizer.value, calls, seed)
        else:
            found = _stages(chosen, suite, flow, seed, warm, accelerated)
    if as_json:
        print(json.dumps([row.to_json() for row in found], indent=1))
    else:
        Console().print(_calls_table(found) if quantizer is not None else _steps_table(found))
    return int(Exit.OK)


def _stages(case: Any, suite: str, flow_name: str, seed: int, warm: bool, accelerated: bool) -> Any:
    from opsuite.accelerate import accelerate
    from opsuite.flows import FLOWS
    from opsuite.pipeline.pipeline import Request, run_case
    from opsuite.profiling.stages import steps

    flow = FLOWS.get(flow_name).require()
    if accelerated:
        accelerate()
    if warm:
        run_case(case, flow, Request(suite, seed))
    return steps(run_case(case, flow, Request(suite, seed)))


def _quantizer_calls(case: Any, flow_name: str, quantizer: str, calls: int, seed: int) -> Any:
    import torch

    from opsuite.flows import FLOWS
    from opsuite.profiling.quantizer import profile_quantizer

    flow = FLOWS.get(flow_name)

    def build() -> tuple[Any, tuple[Any, ...]]:
        built = case.instantiate(seed, flow)
        return built.module, built.inputs

    def second() -> tuple[Any, tuple[Any, ...]]:
        return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), (torch.randn(1, 4),)

    models = [(case.id, build)] * calls + [("Linear + ReLU", second)]
    return profile_quantizer(quantizer, models)


def _steps_table(rows: list[Any]) -> Table:
    table = Table("stage", box=None, pad_edge=False, header_style="bold")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for row in rows:
        name = "  " + row.step.partition(".")[2] if "." in row.step else row.step
        style = "dim" if "." in row.step else ""
        table.add_row(name, f"{row.seconds:.4f}", f"{row.share:.1f} %", style=style)
    return table


def _calls_table(rows: list[Any]) -> Table:
    table = Table("call", "model", box=None, pad_edge=False, header_style="bold")
    for column in ("prepare s", "builds", "in builds s", "mean build s", "distinct", "new"):
        table.add_column(column, justify="right")
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


@contextmanager
def _traced(path: Path | None) -> Iterator[None]:
    """Writes the block's call stacks to `path` in speedscope's format."""
    if path is None:
        yield
        return
    try:
        from pyinstrument import Profiler
        from pyinstrument.renderers import SpeedscopeRenderer
    except ImportError:
        raise OpsuiteError("--trace needs pyinstrument: pip install 'opsuite[profile]'", Exit.ENVIRONMENT) from None
    profiler = Profiler()
    with profiler:
        yield
    path.write_text(profiler.output(SpeedscopeRenderer()), "utf-8")
