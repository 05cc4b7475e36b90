"""Exit codes of every opsuite command: one table, in one place."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command's exit code says. Numbers are nextest's where nextest has one."""

    OK = 0
    """All as expected."""
    INTERNAL = 1
    """An unexpected internal error: a fault of opsuite."""
    USAGE = 2
    """The command line, a file or a directory that it names is wrong."""
    NOTHING_SELECTED = 4
    """The selection holds no case."""
    ENVIRONMENT = 96
    """This environment cannot run what was asked for."""
    FAILURES = 100
    """Cases failed, crashed or timed out."""
    INCOMPLETE = 106
    """Something that was planned has no result."""


def in_short(error: BaseException) -> str:
    """An exception in one line: its type, and the first line of what it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


class OpsuiteError(Exception):
    """An error that a user can act on: printed as one line, without a traceback.

    Args:
        message: names the thing that is wrong and what to do about it.
        code: the exit code of the command.
    """

    def __init__(self, message: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.code = code
