"""What can be wrong with a program, its weights, its inputs or its execution."""

from __future__ import annotations

from opsuite.exits import OpsuiteError


class ProgramError(OpsuiteError):
    """The program or its weights contradict themselves, are truncated or cannot be read."""


class UnknownOpError(ProgramError):
    """The program uses an operation that the interpreter does not have."""


class InputError(OpsuiteError):
    """The inputs given to a program are not those that it declares."""


class OpError(OpsuiteError):
    """An operation refused its operands, or gave a value that is not of its declared type.

    Args:
        message: what it refused.
        is_placed: whether the message says already where in the program that was.
    """

    def __init__(self, message: str, is_placed: bool = False) -> None:
        super().__init__(message)
        self.is_placed = is_placed
