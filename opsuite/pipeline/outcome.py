"""Outcomes: what a record says of its case, as data that summaries and reports read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["build", "eager", "quantize", "export", "lower", "serialize", "execute", "compare"]
STAGES: tuple[Stage, ...] = ("build", "eager", "quantize", "export", "lower", "serialize", "execute", "compare")
"""In the order in which the pipeline runs them."""


@dataclass(frozen=True)
class OutcomeKind:
    """A kind of outcome.

    Attributes:
        name: the part of an outcome before its colon.
        is_failure: whether the run fails for it.
        is_result: whether the case has a result; a plan with a case that has none is incomplete.
        style: rich's style for it.
        meaning: one line for people.
    """

    name: str
    is_failure: bool
    is_result: bool
    style: str
    meaning: str


KINDS: dict[str, OutcomeKind] = {
    kind.name: kind
    for kind in (
        OutcomeKind("pass", False, True, "green", "executed here, and every output agrees"),
        OutcomeKind("fail", True, True, "red", "a stage failed; the outcome names it"),
        OutcomeKind("timeout", True, True, "magenta", "ended at its time limit"),
        OutcomeKind("crash", True, True, "bold red", "its process died or outgrew its memory limit"),
        OutcomeKind("unverified", False, True, "yellow", "lowered, but nothing here can execute it: not a pass"),
        OutcomeKind("skip", False, True, "cyan", "the case itself cannot run; the outcome names why"),
        OutcomeKind("not_run", False, False, "dim", "planned, without a result"),
    )
}

SKIP_REASONS: dict[str, str] = {
    "case": "the case says that it cannot run",
    "build": "the case's model cannot be built",
    "eager": "the model does not run in eager mode",
}
"""What may follow `skip:`."""


def kind_of(outcome: str) -> OutcomeKind:
    """The kind of an outcome such as `fail:lower`. Raises KeyError for an unknown one."""
    return KINDS[outcome.partition(":")[0]]


def check_outcome(outcome: str) -> str:
    """Returns the outcome. Raises ValueError where it is none of the documented ones."""
    name, _, detail = outcome.partition(":")
    allowed = {"fail": STAGES, "skip": tuple(SKIP_REASONS)}.get(name, ("",))
    if name not in KINDS or detail not in allowed:
        raise ValueError(f"{outcome!r} is not an outcome")
    return outcome
