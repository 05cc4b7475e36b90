from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
INPUTS = Path(__file__).parent / "e2e" / "inputs"

# A command that hangs must fail its test, not the whole session; far above what any of them takes.
COMMAND_TIMEOUT = 400


@dataclass(frozen=True)
class Ended:
    """A command that has ended, in this process or in one of its own."""

    code: int
    out: str
    err: str

    def assert_one_line_error(self, code: int, *words: str) -> None:
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("opsuite: ")
        assert "Traceback" not in self.out + self.err
        for word in words:
            assert word in lines[0]
        assert self.code == code


def command_environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **variables}


@pytest.fixture(scope="session")
def inputs() -> Path:
    return INPUTS


@pytest.fixture(scope="session")
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `opsuite ARGUMENTS` as a process; what still runs at the end of the session is killed."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "opsuite", *map(str, arguments)],
            cwd=cwd,
            env=command_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def command(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Ended]:
    """Runs `opsuite ARGUMENTS` as a process, to its end."""

    def run(*arguments: str | Path, cwd: Path | None = None, **variables: str) -> Ended:
        process = start(*arguments, cwd=cwd, **variables)
        out, err = process.communicate(timeout=COMMAND_TIMEOUT)
        return Ended(process.returncode, out, err)

    return run


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs `opsuite ARGUMENTS` in this process: for commands that end before a worker starts."""

    def run(*arguments: str | Path) -> Ended:
        from opsuite.cli import main

        monkeypatch.setattr(sys, "argv", ["opsuite", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    return run
