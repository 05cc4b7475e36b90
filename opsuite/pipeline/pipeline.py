"""The pipeline: one case through one flow, in stage order, to one record. It prints nothing."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from opsuite.cases.case import Case, CaseSkipped
from opsuite.environment import fingerprint
from opsuite.flows.flow import Flow
from opsuite.pipeline import compare, eager, execute, export, lower, quantize, serialize
from opsuite.pipeline.delegation import Delegation
from opsuite.pipeline.state import StageFunction, State
from opsuite.results.record import DelegationCounts, ErrorInfo, Record

MESSAGE_LIMIT = 2000
"""Characters of an error's message that a record keeps; the log keeps all of it."""

CAUGHT = (Exception, SystemExit)
"""What a model may raise: a `sys.exit()` in it ends its case, not the worker."""

ORDER: tuple[tuple[str, StageFunction], ...] = (
    ("eager", eager.run),
    ("quantize", quantize.run),
    ("export", export.run),
    ("lower", lower.run),
    ("serialize", serialize.run),
    ("execute", execute.run),
    ("compare", compare.run),
)


@dataclass(frozen=True)
class Request:
    """What the pipeline needs to know besides the case and the flow."""

    suite: str
    seed: int = 0
    runtime: str = "auto"


def run_case(
    case: Case,
    flow: Flow,
    request: Request,
    on_stage: Callable[[str], None] = lambda stage: None,
    on_traceback: Callable[[str], None] = lambda text: None,
) -> Record:
    """Takes a case through a flow. Failures become the record's outcome; nothing is raised for them.

    Args:
        case: built after the generators are seeded from its ID.
        flow: must be available.
        request: suite, seed of the run, and which runtime may execute.
        on_stage: told the name of each stage as it begins.
        on_traceback: handed the traceback of a failure.
    """
    record = Record(
        id=case.id, suite=request.suite, flow=flow.name, outcome="pass", seed=request.seed, environment=fingerprint()
    )
    on_stage("build")
    start = time.perf_counter()
    try:
        built = case.instantiate(request.seed, flow)
    except CaseSkipped as reason:
        return _ended(record, "skip:case", "build", reason)
    except CAUGHT as error:
        on_traceback(traceback.format_exc())
        return _ended(record, "skip:build", "build", error)
    finally:
        record.seconds["build"] = time.perf_counter() - start
    state = State(built, flow, request.runtime)
    try:
        return _run_stages(state, record, on_stage, on_traceback)
    finally:
        _report(state, record)
        _forget()


def _run_stages(
    state: State, record: Record, on_stage: Callable[[str], None], on_traceback: Callable[[str], None]
) -> Record:
    for stage, function in ORDER:
        if stage == "quantize" and not state.flow.quantize:
            continue
        on_stage(stage)
        try:
            with state.timed(stage):
                function(state)
        except CAUGHT as error:
            on_traceback(traceback.format_exc())
            outcome = "skip:eager" if stage == "eager" else f"fail:{stage}"
            return _ended(record, outcome, stage, error)
        if state.unverified is not None:
            return _ended(record, "unverified", stage, None, reason=state.unverified)
    return record


def _ended(record: Record, outcome: str, stage: str, error: BaseException | None, reason: str = "") -> Record:
    record.outcome, record.stage = outcome, stage
    message = str(error) if error is not None else reason
    # JSON has no form for a lone surrogate, as undecodable file names have them.
    message = message.encode("utf-8", "backslashreplace").decode()
    record.error = ErrorInfo(
        type=type(error).__name__ if error is not None else outcome.capitalize(),
        message=message if len(message) <= MESSAGE_LIMIT else message[:MESSAGE_LIMIT] + " [...]",
    )
    return record


def _report(state: State, record: Record) -> None:
    """Copies to the record what the stages that ran have found out."""
    record.seconds.update(state.seconds)
    if state.delegation is not None:
        record.delegation = _counts(state.delegation)
        record.delegated = state.delegation.extent  # type: ignore[assignment]
    record.quantized_nodes = state.quantized_nodes
    record.quantization_changed_lowering = None if state.qdq_nodes is None else state.qdq_nodes > 0
    record.pte_bytes = None if state.pte is None else len(state.pte)
    record.runtime = state.spoke
    record.accuracy = state.accuracy
    if state.calibration is not None:
        record.quantization = compare.quantization_error(state.calibration)


def _counts(delegation: Delegation) -> DelegationCounts:
    return DelegationCounts(
        delegated_nodes=delegation.delegated.total(),
        undelegated_nodes=delegation.undelegated.total(),
        delegated_node_percent=delegation.node_percent,
        delegated_op_percent=delegation.op_percent,
        delegated_ops=dict(sorted(delegation.delegated.items())),
        undelegated_ops=dict(sorted(delegation.undelegated.items())),
    )


def _forget() -> None:
    """Drops what torch keeps between exports, so that no case can depend on the ones before it."""
    import torch._dynamo

    torch._dynamo.reset()
    gc.collect()
