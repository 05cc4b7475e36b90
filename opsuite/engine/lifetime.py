"""Processes that must not outlive the run that started them, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Has the kernel kill this process when its parent ends; reaches one that is stuck in native code, too.

    A fork server needs it as much as its workers do: each worker holds the pipe by whose end the fork server knows
    that the run has ended, and so would keep it, and with it themselves, alive. Linux only.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_group_with_run() -> None:
    """Watches, in a thread, the process that asked for this worker; kills the worker's process group when it ends."""
    run = multiprocessing.parent_process()
    assert run is not None

    def watch() -> None:
        run.join()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="watch-run").start()
