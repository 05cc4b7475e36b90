"""Compares the quantizers over many models: cases of a suite, or random ones."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.graph_module import _loader as _fx_sources

from opsuite.cases.case import Built, CaseSkipped
from opsuite.exits import in_short
from opsuite.flows.coreml import static_int8_config
from opsuite.quantizer.annotate import Annotated
from opsuite.quantizer.equivalence import Comparison, Difference, compare
from opsuite.quantizer.quantizer import Decisions

if TYPE_CHECKING:
    from opsuite.quantizer.random_models import RandomModel

MODES: dict[str, bool] = {"ptq": False, "qat": True}
"""Ways to prepare a model, and whether it is for training."""

_RESET_EVERY = 100
"""torch keeps something of every model: Dynamo what it traced, fx the source of every recompilation, a gigabyte in two
thousand models. After so many of them it is told to forget."""

_DRAWS_PER_MODEL = 3
"""Draws, for each random model that is wanted: a part of them repeats earlier ones."""

_MODE_DEPENDENT = (
    torch.nn.modules.batchnorm._BatchNorm,
    torch.nn.modules.dropout._DropoutNd,
)


@dataclass
class Reached:
    """Patterns that were annotated, and reasons why others were not, each with the number of times."""

    patterns: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def update(self, other: Reached) -> None:
        self.patterns.update(other.patterns)
        self.reasons.update(other.reasons)


@dataclass(frozen=True)
class Checked:
    """One model: its differences, or why it could not be compared.

    Attributes:
        name: the case's ID with the mode, or the number of the random model.
        differences: none if both quantizers do the same.
        unreached: why the model never came to a quantizer.
        errors: the stages that fail with both quantizers, and how they fail with ours.
        annotated: number of annotated nodes.
        reached: the patterns that were annotated, and the reasons why others were not.
        model: code of the model where there are differences and no case to name.
    """

    name: str
    differences: tuple[Difference, ...] = ()
    unreached: str = ""
    errors: tuple[str, ...] = ()
    annotated: int = 0
    reached: Reached = field(default_factory=Reached)
    model: str = ""


@dataclass
class Verification:
    """What came of all models. `observe` is called with each."""

    observe: Callable[[Checked], None] = lambda checked: None
    compared: int = 0
    with_errors: int = 0
    annotated: int = 0
    reached: Reached = field(default_factory=Reached)
    unreached: list[Checked] = field(default_factory=list)
    different: list[Checked] = field(default_factory=list)

    def add(self, checked: Checked) -> None:
        self.observe(checked)
        if checked.unreached:
            self.unreached.append(checked)
            return
        self.compared += 1
        self.with_errors += bool(checked.errors)
        self.annotated += checked.annotated
        self.reached.update(checked.reached)
        if checked.differences:
            self.different.append(checked)


def verify_cases(result: Verification, suite: Any, case_ids: Iterable[str], flow: Any, seed: int = 0) -> None:
    """Compares cases in both modes, with the static int8 configuration of the flows.

    A model is captured in evaluation mode, and once more in training mode if it holds a layer that tells them apart.
    """
    for number, case_id in enumerate(case_ids, start=1):
        try:
            built = suite.case(case_id).instantiate(seed, flow)
            captured = _capture(built)
        except CaseSkipped as reason:
            result.add(Checked(case_id, unreached=f"skipped: {reason}"))
            continue
        except Exception as error:
            result.add(Checked(case_id, unreached=in_short(error)))
            continue
        for mode, qat in MODES.items():
            if qat and any(isinstance(module, _MODE_DEPENDENT) for module in built.module.modules()):
                built.module.train()
                try:
                    captured = _capture(built)
                except Exception as error:
                    result.add(Checked(f"{case_id} {mode}", unreached=in_short(error)))
                    continue
            result.add(_checked(f"{case_id} {mode}", compare(captured, built.inputs, static_int8_config(), qat=qat)))
        _forget(number)


def verify_random(result: Verification, count: int, seed: int) -> None:
    """Compares `count` distinct random models, or as many as are drawn of a small number.

    The first that differs ends it: it is shrunk, and the smallest such model is added in its place.
    """
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import Flaky

    from opsuite.quantizer.random_models import random_models

    smallest: list[Checked] = []
    seen: set[RandomModel] = set()

    @seeded(seed)
    @settings(
        max_examples=_DRAWS_PER_MODEL * count,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(random_models())
    def check(model: RandomModel) -> None:
        # hypothesis draws many a model again; shrinking has to be let through.
        if not smallest and (model in seen or len(seen) == count):
            return
        seen.add(model)
        _forget(len(seen))
        checked = check_model(f"random model {len(seen)} of seed {seed}", model)
        if checked.differences:
            smallest[:] = [checked]
            raise _Differs
        if not smallest:
            result.add(checked)

    try:
        check()
    except (_Differs, Flaky):
        result.add(smallest[0])


def check_model(name: str, model: RandomModel) -> Checked:
    """Compares one random model."""
    try:
        defined = model.load()
        captured = model.capture(defined)
    except Exception as error:
        return Checked(name, unreached=in_short(error), model=str(model))
    compared = compare(captured, defined["INPUTS"], defined["CONFIG"], qat=model.qat)
    return _checked(name, compared, str(model))


class _Differs(Exception):
    """Tells hypothesis that a model is worth shrinking."""


def _capture(built: Built) -> Any:
    inputs, shapes = built.inputs, built.dynamic_shapes
    return torch.export.export(built.module, inputs, dynamic_shapes=shapes, strict=True).module()


def _checked(name: str, compared: Comparison, model: str = "") -> Checked:
    return Checked(
        name,
        compared.differences,
        errors=tuple(f"{stage}: {in_short(error)}" for stage, error in compared.ours.errors.items()),
        annotated=compared.ours.annotated,
        reached=_reached(compared.decisions),
        model=model if compared.differences else "",
    )


def _reached(decisions: Decisions | None) -> Reached:
    found = Reached()
    if decisions is None:
        return found
    for decision in decisions.decisions:
        if isinstance(decision.outcome, Annotated):
            found.patterns[decision.pattern] += 1
        else:
            found.reasons[decision.outcome.reason.value] += 1
    found.reasons.update(rejection.reason.value for rejection in decisions.findings.rejections)
    return found


def _forget(number: int) -> None:
    if number % _RESET_EVERY == 0:
        torch._dynamo.reset()
        _fx_sources.eval_cache.clear()
        linecache.clearcache()
