"""`opsuite doctor`: what this environment has and can do."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opsuite.cli import app
from opsuite.exits import Exit


@app.command()
def doctor(
    patterns: Annotated[
        bool, typer.Option("--patterns", help="Check only the quantizer's pattern table against executorch's exports.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show versions, registered backends, which flows are available and why not, and what can be made faster.

    With --patterns: let the installed executorch export its 405 patterns (about a minute) and compare each graph, and
    their order, with opsuite's table. Exit 0 if the table holds, 100 if it does not.
    """
    if patterns:
        return _check_patterns(as_json)
    found = diagnose()
    if as_json:
        print(json.dumps(found, indent=1))
        return int(Exit.OK)
    console = Console()
    versions = Table("package", "version", box=None, pad_edge=False, header_style="bold")
    for name, version in found["environment"].items():
        versions.add_row(name, version)
    console.print(versions)
    console.print(f"\nbackends that execute here: {', '.join(found['backends']) or 'none'}\n", highlight=False)
    flows = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("flow", "lowers", "executes"):
        flows.add_column(column, no_wrap=True)
    flows.add_column("")
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in found["flows"]:
        grouped.setdefault(row["unavailable"] or row["name"], []).append(row)
    for rows in grouped.values():
        flows.add_row(
            Text("\n".join(row["name"] for row in rows)),
            Text("yes", "green") if rows[0]["unavailable"] is None else Text("no", "red"),
            Text("yes", "green") if rows[0]["executes"] else Text("no", "yellow"),
            Text(rows[0]["unavailable"] or rows[0]["summary"], overflow="fold"),
        )
    console.print(flows)
    parts = Table("part of opsuite.accelerate()", "", "what it does", box=None, pad_edge=False, header_style="bold")
    for part in found["accelerate"]:
        style = "yellow" if part["reason"] else "green"
        parts.add_row(part["name"], Text(part["state"], style), Text(part["reason"] or part["does"], overflow="fold"))
    console.print()
    console.print(parts)
    return int(Exit.OK)


def _check_patterns(as_json: bool) -> int:
    from opsuite.output import quiet

    with quiet():
        from opsuite.quantizer.drift import check_patterns

        report = check_patterns()
    if as_json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        print(report)
    return int(Exit.OK if report.holds else Exit.FAILURES)


def diagnose() -> dict[str, Any]:
    """Versions, backends that execute here, each flow with why it is not available, each part of `accelerate()`."""
    from dataclasses import asdict

    from opsuite.accelerate import status
    from opsuite.environment import environment
    from opsuite.flows import FLOWS
    from opsuite.output import quiet
    from opsuite.runtime import native

    with quiet():
        backends = native.registered_backends()
        parts = status()
    return {
        "environment": environment(),
        "backends": backends,
        "flows": [
            {
                "name": flow.name,
                "summary": flow.summary,
                "unavailable": flow.unavailable(),
                "executes": flow.delegate is None or native.is_available(flow.delegate),
            }
            for flow in FLOWS
        ],
        "accelerate": [asdict(part) for part in parts],
    }
