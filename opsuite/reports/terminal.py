"""The summary that ends a run on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opsuite.pipeline.outcome import kind_of
from opsuite.reports.progress import time_text
from opsuite.reports.repeat import repeat_command
from opsuite.results.record import Record
from opsuite.results.store import Plan
from opsuite.results.summary import Summary, summarize, total_seconds

GROUPS_SHOWN, IDS_SHOWN, MESSAGE_SHOWN = 20, 3, 160


def print_summary(console: Console, plan: Plan, records: Sequence[Record], directory: str, seconds: float) -> None:
    """Outcomes, delegation, slowest cases and failures of each flow, then the totals and what to do next."""
    flows = list(dict.fromkeys(item.flow for item in plan.items))
    for flow in flows:
        items = [item for item in plan.items if item.flow == flow]
        _print_flow(console, flow, summarize(items, records))
    _print_reconciliation(console, plan, records)
    failed = next((record for record in records if kind_of(record.outcome).is_failure), None)
    if failed is not None:
        console.print(
            Text("repeat the first failure:  ") + Text(repeat_command(failed, plan.runtime), "bold"), soft_wrap=True
        )
    console.print(Text(f"records: {directory}/records.jsonl   wall time {time_text(seconds)}"), soft_wrap=True)


def _print_flow(console: Console, flow: str, summary: Summary) -> None:
    console.rule(Text(f"{flow}: {summary.planned} cases"), align="left")
    table = Table(box=None, pad_edge=False, show_header=False)
    for outcome, count in sorted(summary.outcomes.items(), key=lambda entry: -entry[1]):
        kind = kind_of(outcome)
        table.add_row(
            Text(str(count), justify="right"), Text(outcome, style=kind.style), Text(kind.meaning, style="dim")
        )
    console.print(table)
    totals = summary.delegation
    if totals.node_percent is not None and totals.op_percent is not None:
        console.print(
            f"delegated: {totals.delegated_nodes} of {totals.delegated_nodes + totals.undelegated_nodes} nodes "
            f"({totals.node_percent:.1f} %), {totals.delegated_ops} of {totals.all_ops} distinct ops "
            f"({totals.op_percent:.1f} %); cases: "
            + ", ".join(f"{summary.extents[extent]} {extent}" for extent in ("full", "partial", "none"))
        )
    if summary.quantized is not None:
        console.print(f"the quantizer annotated something in {summary.quantized} cases")
    if summary.failures:
        _print_failures(console, summary)
    if len(summary.slowest) > 1:
        _print_slowest(console, summary)


def _print_failures(console: Console, summary: Summary) -> None:
    console.print(Text("failures by message", style="bold"))
    for group in summary.failures[:GROUPS_SHOWN]:
        line = Text(f"{len(group.ids):4d}  ")
        line.append(group.outcome, style=kind_of(group.outcome).style)
        message = group.message
        line.append("  " + (message if len(message) <= MESSAGE_SHOWN else message[:MESSAGE_SHOWN] + "..."))
        console.print(line, soft_wrap=True)
        for case_id in group.ids[:IDS_SHOWN]:
            console.print(Text(f"        {case_id}", style="dim"), soft_wrap=True)
        if len(group.ids) > IDS_SHOWN:
            console.print(Text(f"        and {len(group.ids) - IDS_SHOWN} more", style="dim"))
    if len(summary.failures) > GROUPS_SHOWN:
        console.print(f"      and {len(summary.failures) - GROUPS_SHOWN} more messages")


def _print_slowest(console: Console, summary: Summary) -> None:
    console.print(Text(f"slowest {len(summary.slowest)}", style="bold"))
    for record in summary.slowest:
        stages = sorted((item for item in record.seconds.items() if "." not in item[0]), key=lambda item: -item[1])
        most = f"{stages[0][0]} {stages[0][1]:.1f} s" if stages else ""
        console.print(Text(f"{total_seconds(record):7.1f} s  {record.id}  ({most})"), soft_wrap=True)


def _print_reconciliation(console: Console, plan: Plan, records: Sequence[Record]) -> None:
    for row in plan.reconciliation:
        if row.selected < row.cases:
            continue
        present = [r for r in records if r.suite == row.suite and r.flow == row.flow]
        tests = {record.id.rpartition("#")[0] or record.id for record in present}
        skipped = sum(kind_of(record.outcome).name == "skip" for record in present)
        console.print(
            f"{row.suite} in {row.flow}: {len(tests)} of {row.tests} tests have a result: "
            f"{len(present)} of {row.cases} cases, {skipped} of them skipped with a reason"
        )
