"""Stage profile: seconds and shares of every stage and sub-stage of one case."""

from __future__ import annotations

import importlib
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


def steps(record: Record) -> list[Step]:
    """The record's steps in the order of the pipeline, each sub-stage behind its stage."""
    total = sum(seconds for step, seconds in record.seconds.items() if "." not in step) or 1.0
    order: dict[str, int] = {stage: index for index, stage in enumerate(STAGES)}
    ranked = sorted(
        record.seconds.items(), key=lambda entry: (order.get(entry[0].partition(".")[0], 99), "." in entry[0])
    )
    return [Step(step, seconds, 100 * seconds / total) for step, seconds in ranked]


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
