"""What workers import once: loaded into the fork server (Linux) or at a worker's start (elsewhere).

The module has a name of its own since the fork server is told what to import by name; what to load is passed in
the environment, which a fork server inherits.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import traceback
from typing import TYPE_CHECKING

from opsuite.engine.lifetime import end_with_parent

if TYPE_CHECKING:
    import torch

    from opsuite.flows.flow import Flow

VARIABLE = "OPSUITE_PRELOAD"
"""Holds JSON: {"run": process ID, "flows": [...], "suites": [...], "log": path}."""

THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""One thread each: workers share the cores among themselves."""


def describe(flows: list[str], suites: list[str], log: str) -> str:
    """The value of the environment variable, for the processes that this one starts."""
    return json.dumps({"run": os.getpid(), "flows": flows, "suites": suites, "log": log})


def load() -> None:
    """Imports what the flows and suites named in the environment need, then freezes it.

    Frozen objects are no longer walked by full collections, of which the Core ML converter runs one per case.
    """
    asked = json.loads(os.environ.get(VARIABLE, "{}"))
    if asked.get("run") != os.getppid():
        # A run that was started by a case, or by a test of ours, has inherited the variable: it is not meant.
        return
    if multiprocessing.parent_process() is None:
        # The fork server; a spawned worker has more to look after.
        end_with_parent()
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    try:
        _load(asked["flows"], asked["suites"])
    except Exception:
        # A case that needs what is missing fails in its stage, with its own error.
        traceback.print_exc()
    gc.collect()
    gc.freeze()


def _load(flows: list[str], suites: list[str]) -> None:
    import torch

    import opsuite.cli  # noqa: F401  (a started worker looks at the command's main module)
    from opsuite.accelerate import accelerate
    from opsuite.cases import find_suite
    from opsuite.flows import FLOWS

    torch.set_num_threads(1)
    accelerate()
    for name in flows:
        _warm_up(FLOWS.get(name))
    for name in suites:
        if name.startswith("executorch:"):
            # Collecting takes a second, and every worker would have to.
            find_suite(name).tests  # type: ignore[attr-defined]  # noqa: B018


def _warm_up(flow: Flow) -> None:
    """Takes a small model through the flow, up to its .pte, for what the libraries build at the first use."""
    import tqdm

    from opsuite.cases.case import Case
    from opsuite.pipeline.pipeline import Request, run_case

    # The converter's progress bars would start a thread here, which a fork does not take along.
    tqdm.tqdm.monitor_interval = 0
    record = run_case(Case("warm-up", _small_model), flow, Request("warm-up", runtime="none"), on_traceback=print)
    print(f"warm-up of {flow.name}: {record.outcome}", record.seconds)


def _small_model() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import torch

    return torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3), torch.nn.ReLU()), (torch.randn(1, 2, 5, 5),)


if VARIABLE in os.environ:
    load()
