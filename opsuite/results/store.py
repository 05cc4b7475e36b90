"""The run directory: `plan.json`, `records.jsonl` and `logs/`, held by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import filelock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsuite.exits import Exit, OpsuiteError
from opsuite.results.record import SCHEMA_VERSION, Record, SchemaVersionError, check_schema_version

PLAN, RECORDS, LOGS, LOCK = "plan.json", "records.jsonl", "logs", ".lock"
DAMAGED = "records.damaged"


class PlanItem(BaseModel):
    """One case in one flow."""

    model_config = ConfigDict(frozen=True)

    id: str
    suite: str
    flow: str

    @property
    def key(self) -> tuple[str, str]:
        """The key of the record that the item will have."""
        return (self.flow, self.id)


class Reconciliation(BaseModel):
    """How the cases of a suite taken from elsewhere reconcile with the tests there, in one flow.

    Attributes:
        tests: how many tests the other project has.
        cases: how many cases they give.
        selected: how many of the cases are planned.
    """

    suite: str
    flow: str
    tests: int
    cases: int
    selected: int


class Plan(BaseModel):
    """What a run is going to do; written before the first case starts, and never changed."""

    model_config = ConfigDict(extra="ignore")

    schema_version: str = SCHEMA_VERSION
    created: str
    seed: int
    runtime: str
    selection: str = ""
    environment: dict[str, str]
    reconciliation: list[Reconciliation] = Field(default_factory=list)
    items: list[PlanItem]

    def difference(self, other: Plan) -> str | None:
        """What keeps records of `other` from belonging to this plan; None where nothing does."""
        for name in ("seed", "runtime"):
            if getattr(self, name) != getattr(other, name):
                return f"{name} {getattr(self, name)!r} instead of {getattr(other, name)!r}"
        for name in sorted(self.environment.keys() | other.environment.keys()):
            here, there = self.environment.get(name), other.environment.get(name)
            if here != there:
                return f"{name} {here} instead of {there}"
        if {item.key for item in self.items} != {item.key for item in other.items}:
            return f"{len(self.items)} selected cases that are not the {len(other.items)} planned ones"
        return None


@dataclass(frozen=True)
class Loaded:
    """Records read back: the whole ones, and what had to be dropped.

    Attributes:
        records: the last one of each case and flow, in the order of their first appearance.
        damaged: numbers of the lines that are not whole records, from 1.
    """

    records: list[Record]
    damaged: list[int]


def load_records(path: Path) -> Loaded:
    """Reads a `records.jsonl`, keeping what is whole. A missing file has no records.

    Raises OpsuiteError where a record was written under a schema that this opsuite does not know.
    """
    records: dict[tuple[str, str], Record] = {}
    damaged: list[int] = []
    if not path.exists():
        return Loaded([], [])
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("the line has no end")
                record = Record.from_line(line.decode("utf-8"))
            except SchemaVersionError as error:
                raise OpsuiteError(f"{path}, line {number}: {error}") from error
            except (ValueError, RecursionError):
                damaged.append(number)
            else:
                records[record.key] = record
    return Loaded(list(records.values()), damaged)


def load_plan(directory: Path) -> Plan:
    """Reads a run directory's plan. Raises OpsuiteError where it is missing, damaged or of an unknown schema."""
    path = directory / PLAN
    try:
        raw = json.loads(path.read_text("utf-8"))
        check_schema_version(raw.get("schema_version") if isinstance(raw, dict) else None, str(path))
        return Plan.model_validate(raw)
    except FileNotFoundError:
        raise OpsuiteError(f"{directory} is not a run directory: it has no {PLAN}") from None
    except SchemaVersionError as error:
        raise OpsuiteError(str(error)) from error
    except OSError as error:
        raise OpsuiteError(f"cannot read {path}: {error.strerror}") from error
    except (ValidationError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise OpsuiteError(f"{path} is damaged: {str(error).splitlines()[0]}") from error


def log_name(item: PlanItem) -> str:
    """A log's path relative to the run directory: readable, and unique whatever the ID holds."""
    plain = re.sub(r"[^A-Za-z0-9._@#=+-]+", "_", item.id)[-100:].lstrip("._")
    digest = hashlib.sha256(item.id.encode()).hexdigest()[:8]
    return f"{LOGS}/{item.flow}/{plain}-{digest}.log"


@dataclass
class RunDirectory:
    """A run directory that this process writes; a context manager that lets go of it."""

    path: Path
    plan: Plan
    records: list[Record] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _lock: filelock.BaseFileLock | None = None

    @classmethod
    def create(cls, path: Path, plan: Plan) -> RunDirectory:
        """A new run directory. Raises OpsuiteError where the directory is not empty or cannot be written."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / LOCK).exists():
                # Before a lock is taken, which would leave its file in a directory that is not ours.
                _refuse_occupied(path)
            lock = _lock(path)
            try:
                _refuse_occupied(path)
            except OpsuiteError:
                lock.release()
                raise
            (path / LOGS).mkdir()
            temporary = path / (PLAN + ".new")
            temporary.write_text(plan.model_dump_json(indent=1) + "\n", "utf-8")
            temporary.replace(path / PLAN)
            return cls(path, plan, _file=(path / RECORDS).open("ab"), _lock=lock)
        except OSError as error:
            raise OpsuiteError(f"cannot write output directory {path}: {error.strerror}") from error

    @classmethod
    def resume(cls, path: Path) -> RunDirectory:
        """An existing run directory, with the records that it has; damaged lines are moved out of the way."""
        plan = load_plan(path)
        try:
            lock = _lock(path)
            loaded = load_records(path / RECORDS)
            if loaded.damaged:
                _set_damaged_lines_aside(path, loaded.damaged)
            (path / LOGS).mkdir(exist_ok=True)
            return cls(path, plan, loaded.records, loaded.damaged, (path / RECORDS).open("ab"), lock)
        except OSError as error:
            raise OpsuiteError(f"cannot resume {path}: {error.strerror}") from error

    @property
    def remaining(self) -> list[PlanItem]:
        """Planned, and without a record, in the plan's order."""
        done = {record.key for record in self.records}
        return [item for item in self.plan.items if item.key not in done]

    def append(self, record: Record) -> None:
        """Writes a record and flushes it, so that a killed process loses none that has ended.

        Raises OpsuiteError where the disk is full or the directory has gone.
        """
        assert self._file is not None
        try:
            self._file.write(record.to_line().encode() + b"\n")
            self._file.flush()
        except OSError as error:
            hint = "free some space, then go on with" if error.errno == errno.ENOSPC else "go on with"
            raise OpsuiteError(
                f"cannot write {self.path / RECORDS}: {error.strerror}; {hint} --resume {self.path}", Exit.INCOMPLETE
            ) from error
        self.records.append(record)

    def log_path(self, item: PlanItem) -> Path:
        """Where a case's output goes; its directory exists afterwards."""
        path = self.path / log_name(item)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        if self._lock is not None:
            self._lock.release()


def _refuse_occupied(path: Path) -> None:
    occupied = sorted(entry.name for entry in path.iterdir() if entry.name != LOCK)
    if occupied:
        what = f"--resume {path} goes on with it" if PLAN in occupied else "choose another one with -o"
        raise OpsuiteError(f"output directory {path} is not empty ({occupied[0]}, ...): {what}")


def _lock(path: Path) -> filelock.BaseFileLock:
    lock = filelock.FileLock(path / LOCK, mode=0o644)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise OpsuiteError(f"another run is writing to {path}: wait for it, or choose another directory") from None
    return lock


def _set_damaged_lines_aside(path: Path, damaged: list[int]) -> None:
    """Moves damaged lines to a file of their own, so that what is appended begins on a new line."""
    with (path / RECORDS).open("rb") as file:
        # As load_records counts them: bytes.splitlines() would also split at a carriage return in a damaged line.
        lines = list(file)
    with (path / DAMAGED).open("ab") as aside:
        aside.writelines(lines[number - 1] for number in damaged)
    whole = path / (RECORDS + ".new")
    with whole.open("wb") as file:
        file.writelines(line for number, line in enumerate(lines, start=1) if number not in set(damaged))
        file.flush()
        os.fsync(file.fileno())
    whole.replace(path / RECORDS)
