"""`opsuite list`: suites and cases; piped, one case ID a line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from opsuite.cli import app
from opsuite.cli.options import SuiteArgument
from opsuite.exits import Exit, OpsuiteError


@app.command("list")
def list_cases(
    suites: SuiteArgument = None,
    flow: Annotated[str, typer.Option("--flow", "-f", help="Flow whose cases are listed.")] = "coreml_static_int8",
    k: Annotated[str, typer.Option("-k", metavar="EXPR", help="Only cases whose ID matches.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List cases, one ID a line.

    Without SUITES on a terminal: the suites and flows there are, with the number of their cases.
    """
    from opsuite.cases import SUITES, find_suite, resolve
    from opsuite.engine.plan import known_cases
    from opsuite.engine.select import compile_selection
    from opsuite.flows import FLOWS

    wanted = FLOWS.get(flow)
    if not suites and not k and not as_json and sys.stdout.isatty():
        _overview(Console())
        return int(Exit.OK)
    matches = compile_selection(k)
    rows: list[dict[str, str]] = []
    for selected in map(resolve, suites or SUITES.names()):
        try:
            suite = find_suite(selected.suite)
            known = suite.listing(wanted).case_ids
            ids = known_cases(suite, [selected.case_id], known) if selected.case_id else known
        except OpsuiteError as error:
            if suites or error.code is not Exit.ENVIRONMENT:
                raise
            print(f"opsuite: left out: {error}", file=sys.stderr)
            continue
        rows += [{"id": case_id, "suite": selected.suite} for case_id in ids if matches(case_id)]
    if not rows:
        raise OpsuiteError("no case selected", Exit.NOTHING_SELECTED)
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        print("\n".join(row["id"] for row in rows))
    return int(Exit.OK)


def _overview(console: Console) -> None:
    from opsuite.cases import SUITES
    from opsuite.flows import FLOWS

    table = Table("suite", "cases", "of them in", box=None, pad_edge=False, header_style="bold")
    for suite in SUITES:
        try:
            ids = suite.listing(FLOWS.get("coreml_static_int8")).case_ids
        except OpsuiteError as error:
            table.add_row(suite.name, "-", str(error))
            continue
        families = Counter(case_id.removeprefix(suite.name + "/").split("/")[0].split("::")[0] for case_id in ids)
        shown = ", ".join(f"{name} {count}" for name, count in families.most_common(4))
        table.add_row(suite.name, str(len(ids)), shown + (", ..." if len(families) > 4 else ""))
    console.print(table)
    console.print()
    flows = Table("flow", "", box=None, pad_edge=False, header_style="bold")
    for each in FLOWS:
        if each.probe is None:
            flows.add_row(each.name, each.summary)
    console.print(flows)
    console.print("\nopsuite list SUITE names its cases; opsuite doctor tells which flows are available here.")
