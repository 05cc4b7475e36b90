"""A worker: a process that imports once and then takes cases, one at a time."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from opsuite.engine.lifetime import end_group_with_run, end_with_parent
from opsuite.output import captured

STACK_SIGNAL = signal.SIGUSR1
"""Makes a worker write the stacks of its threads to its log."""

_events: Connection | None = None


@dataclass(frozen=True)
class Task:
    """One case for a worker; everything that it needs, by name."""

    id: str
    suite: str
    flow: str
    seed: int
    runtime: str
    log: str


def initialize(events: Connection) -> None:
    """Makes this process a worker: leader of its own group, silent on Ctrl-C, gone when its parent is."""
    global _events  # noqa: PLW0603
    _events = events
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    end_group_with_run()
    import torch

    import opsuite.engine.preload  # noqa: F401

    torch.set_num_threads(1)


def process_id() -> int:
    """The worker's process ID; asking for it starts the process."""
    return os.getpid()


def run_task(task: Task) -> str:
    """Runs a case and returns its record as a line of JSON. What it prints goes to its log."""
    with captured(Path(task.log)):
        faulthandler.enable(file=sys.stderr)
        faulthandler.register(STACK_SIGNAL, file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            # A case that dies must not take with it what it has printed.
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        _reset_peak_memory()
        line = _run(task)
        faulthandler.unregister(STACK_SIGNAL)
        faulthandler.disable()
    return line


def _run(task: Task) -> str:
    from opsuite.flows import FLOWS
    from opsuite.pipeline.pipeline import Request, run_case

    case = _suite(task.suite).case(task.id)
    request = Request(task.suite, task.seed, task.runtime)
    record = run_case(case, FLOWS.get(task.flow), request, on_stage=_tell, on_traceback=_print_traceback)
    record.peak_memory_bytes = _peak_memory()
    record.worker = os.getpid()
    return record.to_line()


@functools.lru_cache(maxsize=8)
def _suite(name: str) -> Any:
    from opsuite.cases import find_suite

    return find_suite(name)


def _tell(stage: str) -> None:
    if _events is not None:
        _events.send_bytes(stage.encode())


def _print_traceback(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _reset_peak_memory() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> int | None:
    """Peak resident bytes since the case began; where only a process's lifetime peak is to be had, None."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
