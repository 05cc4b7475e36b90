"""The command that repeats a case as it ran."""

from __future__ import annotations

import shlex

from opsuite.results.record import Record


def repeat_command(record: Record, runtime: str = "auto") -> str:
    """A shell command: the case by its ID, with its flow, seed and runtime."""
    argument = f"{record.suite}::{record.id}" if record.suite.endswith(".py") else record.id
    words = ["opsuite", "run", argument, "--flow", record.flow, "--seed", str(record.seed)]
    if runtime != "auto":
        words += ["--runtime", runtime]
    return shlex.join(words)
