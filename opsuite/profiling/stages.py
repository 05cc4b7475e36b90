"""Stage profile: seconds and shares of every stage and sub-stage, of one case or of several."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from opsuite.cases.case import Case
from opsuite.exits import OpsuiteError
from opsuite.pipeline.outcome import STAGES
from opsuite.results.record import Record


@dataclass(frozen=True)
class Step:
    """One stage, or a sub-stage as `stage.step`; `share` is of all stages together, in percent."""

    step: str
    seconds: float
    share: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Profile:
    """Where the time of some cases in one flow went."""

    records: tuple[Record, ...]

    @property
    def total(self) -> float:
        """Seconds of all stages of all cases."""
        return sum(s for record in self.records for step, s in record.seconds.items() if "." not in step)

    def steps(self) -> list[Step]:
        """The steps of all cases together in the order of the pipeline, each sub-stage behind its stage."""
        seconds: dict[str, float] = {}
        for record in self.records:
            for step, value in record.seconds.items():
                seconds[step] = seconds.get(step, 0.0) + value
        order: dict[str, int] = {stage: index for index, stage in enumerate(STAGES)}
        ranked = sorted(seconds.items(), key=lambda entry: (order.get(entry[0].partition(".")[0], 99), "." in entry[0]))
        return [Step(step, value, 100 * value / (self.total or 1.0)) for step, value in ranked]

    def outcome_counts(self) -> str:
        """How the cases ended; a profile of cases that stop early says little."""
        return ", ".join(f"{count} {outcome}" for outcome, count in Counter(r.outcome for r in self.records).items())

    def to_json(self) -> dict[str, Any]:
        return {
            "cases": [
                {"id": record.id, "outcome": record.outcome, "seconds": record.seconds} for record in self.records
            ],
            "seconds": self.total,
            "steps": [step.to_json() for step in self.steps()],
        }


def case_from_callable(reference: str) -> Case:
    """A case from `module:callable`, where the callable returns `(module, inputs)`.

    Raises OpsuiteError where the module cannot be imported or has no such callable.
    """
    module_name, _, name = reference.partition(":")
    try:
        made = getattr(importlib.import_module(module_name), name)
    except Exception as error:
        raise OpsuiteError(f"cannot take {reference!r}: {type(error).__name__}: {error}") from error
    if not callable(made):
        raise OpsuiteError(f"{reference!r} is a {type(made).__name__}, which cannot be called")
    return Case(reference, made)
