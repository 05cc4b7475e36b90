"""A slot of the local engine: one worker process at a time, and the case that it is running.

Each slot is a pool of one process, so a worker that dies can only be running the slot's own case, and a message
that it left half-written can only be the slot's own.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import psutil

from opsuite.engine import worker
from opsuite.engine.worker import Task
from opsuite.results.store import PlanItem

CASES_PER_WORKER = 60
"""A worker is replaced after that many cases, which bounds what caches inside torch can grow to."""


@dataclass
class Running:
    """A case on a worker."""

    item: PlanItem
    task: Task
    future: Future[str]
    started: float
    stage: str = "start"
    stage_started: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    warned: bool = False


class Slot:
    """See the module.

    Args:
        number: from 0; for people.
        context: the multiprocessing context that workers are started with.
    """

    def __init__(self, number: int, context: Any) -> None:
        self.number = number
        self.running: Running | None = None
        self.pid: int | None = None
        self._context = context
        self._executor: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None
        self._events: Connection | None = None
        self._cases = 0

    def start(self, item: PlanItem, task: Task) -> None:
        """Gives the worker a case, starting the worker where there is none.

        Raises BrokenProcessPool where a worker cannot be started.
        """
        if self._executor is None or self._cases >= CASES_PER_WORKER:
            self.stop()
            self._start_worker()
        assert self._executor is not None
        self._cases += 1
        now = time.monotonic()
        self.running = Running(item, task, self._executor.submit(worker.run_task, task), now, stage_started=now)

    def _start_worker(self) -> None:
        self._events, sender = self._context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(1, self._context, worker.initialize, (sender,))
        self.pid = self._executor.submit(worker.process_id).result()
        sender.close()
        self._process = next(p for p in multiprocessing.active_children() if p.pid == self.pid)
        self._cases = 0

    def drain_events(self) -> bool:
        """Takes in the stages that the worker has announced; returns whether there were any."""
        changed = False
        with contextlib.suppress(EOFError, OSError):
            while self.running is not None and self._events is not None and self._events.poll():
                stage = self._events.recv_bytes().decode()
                now = time.monotonic()
                self.running.seconds[self.running.stage] = now - self.running.stage_started
                self.running.stage, self.running.stage_started = stage, now
                changed = True
        return changed

    def memory_bytes(self) -> int:
        """Resident bytes of the worker and its descendants."""
        total = 0
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            for each in [process, *process.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    total += each.memory_info().rss
        return total

    def exit_status(self) -> str:
        """How the worker ended: the signal by name, or the exit code."""
        code = None
        if self._process is not None:
            self._process.join(timeout=5)
            code = self._process.exitcode
        if code is None:
            return "ended without a status"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"exited with code {code}"

    def finish(self) -> Running:
        """Takes the case off the slot."""
        assert self.running is not None
        running, self.running = self.running, None
        return running

    def dump_stack(self) -> None:
        """Has the worker write where it is to its log: a hang leaves no other trace."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, worker.STACK_SIGNAL)
                time.sleep(0.2)

    def kill(self) -> None:
        """Ends the worker and every process that it started, at once."""
        if self.pid is not None:
            # Children in sessions of their own are outside the group; they are known only while the worker lives.
            children: list[psutil.Process] = []
            with contextlib.suppress(psutil.Error):
                children = psutil.Process(self.pid).children(recursive=True)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()
        self.stop()

    def stop(self) -> None:
        """Lets go of the worker and waits until it has ended; an idle one ends by itself."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        if self._events is not None:
            self._events.close()
        self._executor = self._events = self._process = self.pid = None
