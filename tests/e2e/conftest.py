from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from opsuite.results.record import Record
from opsuite.results.store import RECORDS, load_records

# Far above what anything waited for takes; a wait that ends there fails its test.
PATIENCE = 120


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], object]], None]:
    """Waits until a condition holds."""

    def eventually(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "what was waited for has not happened"
            time.sleep(0.05)

    return eventually


@pytest.fixture(scope="session")
def processes_with() -> Callable[[Path], list[psutil.Process]]:
    """The living processes that have a scratch directory in their environment: a run, its workers, their children."""

    def processes_with(scratch: Path) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and process.environ().get("OPSUITE_SCRATCH") == str(scratch):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    return processes_with


def records_of(run: Path) -> dict[str, Record]:
    loaded = load_records(run / RECORDS)
    assert loaded.damaged == []
    return {record.id: record for record in loaded.records}


def verdict(record: Record) -> dict[str, object]:
    """What must be the same however often, and on however many workers, a case is run."""
    described = record.model_dump(
        include={"id", "suite", "flow", "outcome", "delegated", "stage", "delegation", "pte_bytes", "accuracy", "seed"}
    )
    # Timeouts and crashes tell the process and the seconds; the kind of error is what stays.
    return {**described, "error": record.error and record.error.type}


@pytest.fixture(scope="session")
def records() -> Callable[[Path], dict[str, Record]]:
    """The records of a run directory, by case."""
    return records_of


@pytest.fixture(scope="session")
def verdicts() -> Callable[[Path], dict[str, dict[str, object]]]:
    """The verdicts of a run directory, by case."""
    return lambda run: {case_id: verdict(record) for case_id, record in records_of(run).items()}
