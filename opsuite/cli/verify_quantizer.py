"""`opsuite verify-quantizer`: whether our Core ML quantizer does exactly what executorch's does."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console

from opsuite.cli import app
from opsuite.exits import Exit, OpsuiteError

if TYPE_CHECKING:
    from opsuite.quantizer.verification import Checked, Verification

DEFAULT_RANDOM = 200
"""Random models where the command line names neither suites nor a number."""

_SHOWN = 20
_SECONDS_BETWEEN_LINES = 60

SuitesArgument = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time on Python 3.10)
    typer.Argument(metavar="[SUITE]...", help="Suites, cases by ID, Python files, `patterns`, or `models`."),
]


@app.command("verify-quantizer")
def verify_quantizer(
    suites: SuitesArgument = None,
    random: Annotated[
        int, typer.Option("--random", metavar="N", min=0, help="Compare N random models.", show_default=False)
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of cases and random models.")] = 0,
    k: Annotated[str, typer.Option("-k", metavar="EXPR", help="Only cases whose ID matches.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Compare opsuite's CoreMLQuantizer with executorch's: annotations, prepared and converted graphs, PTQ and QAT.

    `patterns` is the smallest model of each pattern; `models` are ResNet-18, MobileNetV2 and BERT, built by
    transformers. Without SUITE and --random: 200 random models. Exit 0 if all are equal, 100 if one is not, 106 if none
    reaches a quantizer; a difference among random models is shrunk and printed as code. The first minute goes into
    executorch's pattern exports.
    """
    from opsuite.output import quiet

    with quiet():
        # Its libraries speak while they are imported.
        from opsuite.quantizer.verification import MODES, Verification
    work = _plan(suites or [], k)
    if not suites and not random:
        random = DEFAULT_RANDOM
    if random and importlib.util.find_spec("hypothesis") is None:
        raise OpsuiteError("random models need hypothesis: pip install hypothesis", Exit.ENVIRONMENT)
    total = random + len(MODES) * sum(len(ids) for _, ids in work)
    start = time.monotonic()
    with _progress(total) as progress, quiet():
        result = Verification(progress.observe)
        _run(result, work, random, seed)
    if as_json:
        print(json.dumps(_to_json(result, time.monotonic() - start), indent=1))
    else:
        _report(Console(soft_wrap=True, highlight=False), result, time.monotonic() - start)
    if result.different:
        return int(Exit.FAILURES)
    # What nothing came to is no proof.
    return int(Exit.OK if result.compared else Exit.INCOMPLETE)


def _plan(suites: list[str], k: str) -> list[tuple[Any, list[str]]]:
    from opsuite.cases import find_suite, resolve
    from opsuite.cases.suite import Selected
    from opsuite.engine.select import compile_selection
    from opsuite.flows import FLOWS
    from opsuite.quantizer import known_models, pattern_models

    own = {known_models.NAME: known_models.suite, pattern_models.NAME: pattern_models.suite}
    matches = compile_selection(k)
    work: list[tuple[Any, list[str]]] = []
    for argument in suites:
        name, _, rest = argument.partition("/")
        if name in own:
            selected = Selected(name, argument if rest else None)
            suite: Any = own[name]()
        else:
            selected = resolve(argument)
            suite = find_suite(selected.suite)
        case_id = selected.case_id
        ids = [case_id] if case_id else list(suite.listing(FLOWS.get("coreml_static_int8")).case_ids)
        work.append((suite, [case for case in ids if matches(case)]))
    if suites and not any(ids for _, ids in work):
        raise OpsuiteError("no case selected", Exit.NOTHING_SELECTED)
    return work


def _run(result: Verification, work: list[tuple[Any, list[str]]], random: int, seed: int) -> None:
    import torch

    from opsuite.flows import FLOWS
    from opsuite.quantizer.equivalence import comparing
    from opsuite.quantizer.verification import verify_cases, verify_random

    torch.set_num_threads(1)
    with comparing():
        for suite, ids in work:
            verify_cases(result, suite, ids, FLOWS.get("coreml_static_int8"), seed)
        if random:
            verify_random(result, random, seed)


@contextmanager
def _progress(total: int) -> Iterator[_Progress]:
    """Progress on standard error as it is now: everything else is kept off the terminal meanwhile."""
    with os.fdopen(os.dup(2), "w") as stream:
        progress = _Progress(Console(file=stream, highlight=False, soft_wrap=True), total)
        try:
            yield progress
        finally:
            progress.close()


class _Progress:
    """One line that changes on a terminal; elsewhere a line now and then."""

    def __init__(self, console: Console, total: int) -> None:
        self._total = total
        self._done = self._differ = 0
        self._console = console
        self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
        self._status = console.status("exporting executorch's 405 patterns") if console.is_terminal else None
        if self._status:
            self._status.start()

    def observe(self, checked: Checked) -> None:
        self._done += 1
        self._differ += bool(checked.differences)
        line = f"{self._done} of {self._total}, {self._differ} differ  {checked.name}"
        if self._status:
            self._status.update(line)
        elif time.monotonic() >= self._next_line:
            self._console.print(line, markup=False)
            self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES

    def close(self) -> None:
        if self._status:
            self._status.stop()


def _report(console: Console, result: Verification, seconds: float) -> None:
    for checked in result.different:
        console.print(f"\n{checked.name}: {len(checked.differences)} differences", style="bold red", markup=False)
        if checked.model:
            console.print(checked.model, markup=False)
        for difference in checked.differences[:_SHOWN]:
            console.print(f"  {difference}", markup=False)
    for reason, count in Counter(checked.unreached for checked in result.unreached).most_common(_SHOWN):
        console.print(f"not compared, {count}: {reason}", markup=False)
    console.print(_reach(result))
    console.print(
        f"{result.compared} compared ({result.annotated} annotated nodes; {result.with_errors} fail alike with both), "
        f"{len(result.unreached)} never reach a quantizer, {len(result.different)} differ, in {seconds:.0f} s"
    )


def _reach(result: Verification) -> str:
    """How much of the table the models came to: a comparison says nothing about what it did not reach."""
    from opsuite.quantizer.patterns import FAMILIES, PATTERNS, Rule

    shared = [family.name for family in FAMILIES if family.rule is Rule.SHARED]
    reached = result.reached.patterns
    reasons = ", ".join(f"{reason} {count}" for reason, count in result.reached.reasons.most_common())
    return (
        f"reached {sum(str(key) in reached for key in PATTERNS)} of {len(PATTERNS)} patterns and "
        f"{sum(name in reached for name in shared)} of {len(shared)} ops that share qparams; "
        f"not annotated: {reasons or 'none'}"
    )


def _to_json(result: Verification, seconds: float) -> dict[str, Any]:
    return {
        "compared": result.compared,
        "annotated_nodes": result.annotated,
        "failing_alike": result.with_errors,
        "patterns_reached": dict(result.reached.patterns),
        "reasons_reached": dict(result.reached.reasons),
        "unreached": [{"name": checked.name, "reason": checked.unreached} for checked in result.unreached],
        "different": [
            {
                "name": checked.name,
                "model": checked.model or None,
                "differences": [vars(difference) for difference in checked.differences],
            }
            for checked in result.different
        ],
        "seconds": round(seconds, 3),
    }
