"""Output of a case: caught in its log, whoever prints it, and kept within a limit."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

LOG_LIMIT = 1 << 20
"""Bytes that a case's log may hold when the case has ended."""


@contextlib.contextmanager
def captured(path: Path) -> Iterator[None]:
    """Sends file descriptors 1 and 2 of this process, and so those of its children, to the end of a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    target = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        for number, descriptor in enumerate(saved, start=1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(target)


@contextlib.contextmanager
def recorded() -> Iterator[Callable[[], str]]:
    """Yields a function that returns what was printed so far; it is printed after all when the block ends.

    Inside `captured` it is read back from the log, where it stays whatever becomes of this process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if _is_log(2):
        start = os.fstat(2).st_size
        yield lambda: os.pread(2, LOG_LIMIT, start).decode("utf-8", "replace")
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "printed"
        try:
            with captured(path):
                yield lambda: tail(path, lines=1000, limit=LOG_LIMIT)
        finally:
            sys.stderr.write(tail(path, lines=1000, limit=LOG_LIMIT))


def _is_log(descriptor: int) -> bool:
    """Whether the descriptor is a file that can be read, as `captured` opens it."""
    mode = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    wanted = os.O_RDWR | os.O_APPEND
    return stat.S_ISREG(os.fstat(descriptor).st_mode) and mode & (os.O_ACCMODE | os.O_APPEND) == wanted


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps what libraries print while they are imported off the terminal; it is shown where the block raises."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "printed"
        try:
            with captured(path):
                yield
        except Exception:
            print(tail(path), file=sys.stderr)
            raise


def cap(path: Path, limit: int = LOG_LIMIT) -> bool:
    """Cuts the middle out of a log that is larger than `limit` bytes; returns whether it did.

    A writer that has the file open for appending goes on behind what is left.
    """
    try:
        size = path.stat().st_size
        if size <= limit:
            return False
        half = limit // 2
        with path.open("r+b") as file:
            file.seek(size - half)
            tail = file.read(half)
            file.seek(half)
            file.write(b"\n[... %d bytes left out ...]\n" % (size - 2 * half))
            file.write(tail)
            file.truncate()
    except FileNotFoundError:
        return False
    return True


def tail(path: Path, lines: int = 20, limit: int = 8192) -> str:
    """The last lines of a log, as text; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
