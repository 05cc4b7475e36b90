"""The local engine: plan items on worker processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from opsuite import output
from opsuite.engine import preload
from opsuite.engine.slot import Running, Slot
from opsuite.engine.worker import Task
from opsuite.environment import fingerprint
from opsuite.exits import Exit, OpsuiteError
from opsuite.results.record import ErrorInfo, Record
from opsuite.results.store import PlanItem, RunDirectory, log_name

TICK = 0.1
"""Seconds between looks at deadlines, memory and logs."""


@dataclass(frozen=True)
class Limits:
    """What a case may take.

    Attributes:
        timeout: seconds from its start to its end.
        memory_bytes: resident bytes of its worker with all that it started; None for no limit.
    """

    timeout: float = 600.0
    memory_bytes: int | None = 8 << 30


class Observer(Protocol):
    """Hears what happens, as it happens."""

    def started(self, running: Running, slot: int) -> None: ...

    def ticked(self, running: Sequence[Running]) -> None: ...

    def finished(self, record: Record) -> None: ...


def run_items(run: RunDirectory, jobs: int, limits: Limits, observer: Observer) -> None:
    """Runs what the run directory still lacks, and appends a record for each item as it ends.

    On KeyboardInterrupt, or an error of ours, every worker is ended before it is raised again.
    """
    with _environment(run):
        _run_pending(run, jobs, limits, observer)


def _run_pending(run: RunDirectory, jobs: int, limits: Limits, observer: Observer) -> None:
    pending = deque(run.remaining)
    context = _context()
    slots = [Slot(number, context) for number in range(max(1, min(jobs, len(pending))))]
    try:
        while pending or any(slot.running for slot in slots):
            for slot in slots:
                if slot.running is None and pending:
                    _start(slot, run, pending.popleft(), observer)
            busy = [slot for slot in slots if slot.running is not None]
            wait([slot.running.future for slot in busy if slot.running], timeout=TICK, return_when=FIRST_COMPLETED)
            for slot in busy:
                slot.drain_events()
                record = _look(slot, limits)
                if record is not None:
                    path = run.path / log_name(PlanItem(id=record.id, suite=record.suite, flow=record.flow))
                    output.cap(path)
                    _attach_log(record, run.path, path)
                    run.append(record)
                    observer.finished(record)
            observer.ticked([slot.running for slot in slots if slot.running])
    except BaseException:
        for slot in slots:
            slot.kill()
        raise
    for slot in slots:
        slot.stop()


@contextlib.contextmanager
def _environment(run: RunDirectory) -> Iterator[None]:
    """Tells the processes started meanwhile what to load; what is started later must not take itself for a worker."""
    described = preload.describe(
        flows=sorted({item.flow for item in run.remaining}),
        suites=sorted({item.suite for item in run.remaining}),
        log=str(run.path.absolute() / "logs" / "preload.log"),
    )
    changed = {**preload.THREADS, preload.VARIABLE: described}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _context() -> Any:
    """Fork server on Linux, with everything imported before the first fork; spawn elsewhere."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["opsuite.engine.preload"])
    return context


def _start(slot: Slot, run: RunDirectory, item: PlanItem, observer: Observer) -> None:
    log = run.log_path(item)
    # A log of an attempt that left no record would be mixed up with this one's.
    log.unlink(missing_ok=True)
    task = Task(item.id, item.suite, item.flow, run.plan.seed, run.plan.runtime, str(log.absolute()))
    try:
        slot.start(item, task)
    except BrokenProcessPool as error:
        seen = output.tail(run.path / "logs" / "preload.log", lines=1)
        raise OpsuiteError(f"worker processes cannot be started here: {seen or error}", Exit.INTERNAL) from error
    assert slot.running is not None
    observer.started(slot.running, slot.number)


def _look(slot: Slot, limits: Limits) -> Record | None:
    """The record of the slot's case, where the case has ended, or ends now since it is over a limit."""
    running = slot.running
    assert running is not None
    if running.future.done():
        return _collect(slot)
    elapsed = time.monotonic() - running.started
    if elapsed > limits.timeout:
        slot.dump_stack()
        return _end(slot, "timeout", "Timeout", f"over its {limits.timeout:g} s after {elapsed:.1f} s")
    if limits.memory_bytes is not None:
        used = slot.memory_bytes()
        if used > limits.memory_bytes:
            what = f"over its {limits.memory_bytes / 2**30:.3g} GiB with {used / 2**30:.3g} GiB resident"
            return _end(slot, "crash", "MemoryLimit", what)
    # A case that prints without end must not fill the disk while it runs.
    output.cap(Path(running.task.log), 4 * output.LOG_LIMIT)
    return None


def _collect(slot: Slot) -> Record:
    running = slot.running
    assert running is not None
    # Looked at, not raised again: a SystemExit or KeyboardInterrupt of a case must not end the run.
    error = running.future.exception()
    if isinstance(error, BrokenProcessPool):
        return _end(slot, "crash", "Crash", f"the worker {slot.exit_status()}")
    if error is not None:
        # The worker lived on: what it raised lies outside the pipeline's stages.
        return _end(slot, "crash", type(error).__name__, str(error))
    record = Record.from_line(running.future.result())
    slot.finish()
    return record


def _end(slot: Slot, outcome: str, kind: str, message: str) -> Record:
    """Ends the slot's worker with all that it started, and tells of its case what is known from outside."""
    pid = slot.pid
    slot.kill()
    running = slot.finish()
    running.seconds[running.stage] = time.monotonic() - running.stage_started
    return Record(
        id=running.item.id,
        suite=running.item.suite,
        flow=running.item.flow,
        outcome=outcome,
        stage=running.stage,
        error=ErrorInfo(type=kind, message=f"{message}, in stage {running.stage} (process {pid})"),
        seconds=running.seconds,
        seed=running.task.seed,
        worker=pid,
        environment=fingerprint(),
    )


def _attach_log(record: Record, run_path: Path, log: Path) -> None:
    """Names the log in the record, or removes it where the case printed nothing."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size == 0:
        log.unlink()
        return
    record.log = str(log.relative_to(run_path))
    if record.error is not None:
        record.error.traceback = record.log
