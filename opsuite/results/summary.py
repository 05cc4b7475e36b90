"""What a run says, added up: computed from records and the plan, never a verdict of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opsuite.exits import Exit
from opsuite.pipeline.outcome import kind_of
from opsuite.results.record import Record
from opsuite.results.store import PlanItem


@dataclass(frozen=True)
class DelegationTotals:
    """Nodes and distinct operators over all records that were lowered."""

    delegated_nodes: int
    undelegated_nodes: int
    delegated_ops: int
    all_ops: int

    @property
    def node_percent(self) -> float | None:
        total = self.delegated_nodes + self.undelegated_nodes
        return 100.0 * self.delegated_nodes / total if total else None

    @property
    def op_percent(self) -> float | None:
        return 100.0 * self.delegated_ops / self.all_ops if self.all_ops else None


@dataclass(frozen=True)
class FailureGroup:
    """Failures with the same outcome and the same kind of message."""

    outcome: str
    message: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """A run, or one flow of it, added up.

    Attributes:
        outcomes: how many records have each outcome; `not_run` are planned items without one.
        quantized: records in which the quantizer annotated something; None for flows that do not quantize.
    """

    planned: int
    outcomes: Counter[str]
    delegation: DelegationTotals
    extents: Counter[str]
    quantized: int | None
    slowest: tuple[Record, ...]
    failures: tuple[FailureGroup, ...]

    @property
    def exit_code(self) -> Exit:
        """What the run's command exits with: incomplete before failed, failed before fine."""
        kinds = {kind_of(outcome) for outcome in self.outcomes}
        if any(not kind.is_result for kind in kinds):
            return Exit.INCOMPLETE
        return Exit.FAILURES if any(kind.is_failure for kind in kinds) else Exit.OK


def total_seconds(record: Record) -> float:
    """Seconds over all stages; sub-stages, whose names hold a dot, are part of their stage."""
    return sum(seconds for step, seconds in record.seconds.items() if "." not in step)


def summarize(items: Sequence[PlanItem], records: Iterable[Record], slowest: int = 10) -> Summary:
    """Adds up the records of the planned items."""
    by_key = {record.key: record for record in records}
    planned = [by_key.get(item.key) for item in items]
    present = [record for record in planned if record is not None]
    outcomes = Counter(record.outcome for record in present)
    if len(present) < len(planned):
        outcomes["not_run"] = len(planned) - len(present)
    quantized = [record.quantized_nodes for record in present if record.quantized_nodes is not None]
    return Summary(
        planned=len(planned),
        outcomes=outcomes,
        delegation=_delegation(present),
        extents=Counter(record.delegated for record in present if record.delegated),
        quantized=sum(nodes > 0 for nodes in quantized) if quantized else None,
        slowest=tuple(sorted(present, key=total_seconds, reverse=True)[:slowest]),
        failures=_failure_groups(present),
    )


def _delegation(records: Sequence[Record]) -> DelegationTotals:
    delegated: Counter[str] = Counter()
    undelegated: Counter[str] = Counter()
    for record in records:
        if record.delegation is not None:
            delegated.update(record.delegation.delegated_ops)
            undelegated.update(record.delegation.undelegated_ops)
    return DelegationTotals(
        delegated.total(), undelegated.total(), len(delegated), len(delegated.keys() | undelegated.keys())
    )


def _failure_groups(records: Sequence[Record]) -> tuple[FailureGroup, ...]:
    groups: dict[tuple[str, str], list[str]] = {}
    messages: dict[tuple[str, str], str] = {}
    for record in records:
        if kind_of(record.outcome).is_failure:
            error = record.error
            message = f"{error.type}: {_first_line(error.message)}" if error else ""
            # Figures differ from case to case where the fault is the same.
            key = (record.outcome, re.sub(r"\d+\.\d[\de+-]*|\d{3,}", "#", message))
            groups.setdefault(key, []).append(record.id)
            messages.setdefault(key, message)
    ordered = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return tuple(FailureGroup(key[0], messages[key], tuple(ids)) for key, ids in ordered)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
