"""Turning parts on and off: nested uses are counted, and the last one out puts every attribute back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opsuite.accelerate.seams import Found, Part, Replacement, locate
from opsuite.accelerate.table import DEFAULT_PATTERNS, PARTS, PATTERN_STRATEGIES, parts_for


@dataclass(frozen=True)
class PartStatus:
    """A row of `status()`: `state` is "applied", "available" or "left alone"; a reason comes with the last."""

    name: str
    does: str
    state: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.state}" + (f": {self.reason}" if self.reason else "")


@dataclass
class _Active:
    part: Part
    replacements: list[Replacement]
    on_undo: Callable[[], None] | None
    uses: int = 1


@dataclass
class _State:
    active: dict[str, _Active] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)


_state = _State()


class Acceleration:
    """What `accelerate()` returns: already on; leaving the `with` block or calling `undo()` takes it back."""

    def __init__(self, rows: list[PartStatus], held: list[str]) -> None:
        self.rows = rows
        self._held = held

    @property
    def applied(self) -> list[str]:
        return [row.name for row in self.rows if row.state == "applied"]

    def undo(self) -> None:
        held, self._held = self._held, []
        with _state.lock:
            # Last applied, first undone, so that two parts may share a seam.
            for name in reversed(held):
                _release(name)

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return "\n".join(map(str, self.rows))


def accelerate(
    parts: Iterable[str] | None = None, *, without: Iterable[str] = (), patterns: str = DEFAULT_PATTERNS
) -> Acceleration:
    """Make the installed executorch, coremltools, torchao and torch lower faster with the same output.

    `parts` names the ones wanted (all by default), `without` those not wanted; `patterns` is the strategy for Core ML
    quantizers ("cache" or "table"). Works as a call or as a context manager; calls nest.
    """
    table = parts_for(patterns)
    wanted = _select(table, parts, without)
    rows, held = [], []
    with _state.lock:
        for part in wanted:
            reason = _hold(part)
            rows.append(PartStatus(part.name, part.does, "left alone" if reason else "applied", reason))
            if not reason:
                held.append(part.name)
    return Acceleration(rows, held)


def status(patterns: str = DEFAULT_PATTERNS) -> list[PartStatus]:
    """Every part, whether on, ready to be turned on, or left alone and why."""
    rows = []
    for part in parts_for(patterns):
        if part.name in _state.active:
            rows.append(PartStatus(part.name, part.does, "applied"))
            continue
        found = _locate_all(part)
        reason = found if isinstance(found, str) else ""
        rows.append(PartStatus(part.name, part.does, "left alone" if reason else "available", reason))
    return rows


def undo() -> None:
    """Take back everything, however often it was applied."""
    with _state.lock:
        for name in reversed(list(_state.active)):
            _state.active[name].uses = 1
            _release(name)


@contextmanager
def suspended() -> Iterator[None]:
    """For measuring both sides in turns: attributes and process as they were, but what parts remember stays."""
    with _state.lock:
        active = list(_state.active.values())
        for entry in reversed(active):
            for replacement in reversed(entry.replacements):
                replacement.restore()
            if not entry.part.seams and entry.on_undo:
                entry.on_undo()
        try:
            yield
        finally:
            for entry in active:
                for replacement in entry.replacements:
                    replacement.apply()
                if not entry.part.seams:
                    _, entry.on_undo = entry.part.install({})


def _select(table: tuple[Part, ...], parts: Iterable[str] | None, without: Iterable[str]) -> list[Part]:
    known = {part.name for part in table}
    without = set(without)
    chosen = known if parts is None else set(parts)
    unknown = (chosen | without) - known
    if unknown:
        raise ValueError(f"no part named {', '.join(sorted(unknown))}; parts are {', '.join(p.name for p in table)}")
    return [part for part in table if part.name in chosen - without]


def _locate_all(part: Part) -> list[Found] | str:
    found = []
    for seam in part.seams:
        result = locate(seam)
        if isinstance(result, str):
            return result
        found.append(result)
    found.extend(result for seam in part.optional if not isinstance(result := locate(seam), str))
    return found


def _hold(part: Part) -> str:
    active = _state.active.get(part.name)
    if active is not None:
        active.uses += 1
        return ""
    found = _locate_all(part)
    if isinstance(found, str):
        return found
    values, on_undo = part.install({item.seam.where: item.value for item in found})
    replacements = [Replacement(item, values[item.seam.where]) for item in found if item.seam.where in values]
    for replacement in replacements:
        replacement.apply()
    _state.active[part.name] = _Active(part, replacements, on_undo)
    return ""


def _release(name: str) -> None:
    active = _state.active.get(name)
    if active is None:
        return
    active.uses -= 1
    if active.uses:
        return
    del _state.active[name]
    for replacement in reversed(active.replacements):
        replacement.restore()
    if active.on_undo:
        active.on_undo()


__all__ = ["PARTS", "PATTERN_STRATEGIES", "Acceleration", "PartStatus", "accelerate", "status", "undo"]
