"""Live progress: a bar and the running cases on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from opsuite.engine.slot import Running
from opsuite.pipeline.outcome import kind_of
from opsuite.results.record import Record
from opsuite.results.summary import total_seconds

SLOW = 60.0
"""Seconds after which a running case is pointed out."""


def time_text(seconds: float) -> str:
    """Seconds as people read them: `42 s`, `3 min 05 s`, `1 h 02 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """An observer of the engine that tells people how far it is.

    Args:
        console: where it is told.
        total: planned cases, those of an earlier, resumed run among them.
        done: how many of them already have a record.
    """

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        self._console = console
        self._total = total
        self._done = self._before = done
        self._begun = time.monotonic()
        self._outcomes: dict[str, int] = {}
        self._running: Sequence[Running] = ()
        live = console.is_terminal and not console.no_color
        waiting = Text("preparing workers: importing and warming up torch, executorch and the backend's converter")
        self._live = Live(waiting, console=console, refresh_per_second=4, transient=True) if live else None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.update(Text(""))
            self._live.__exit__(None, None, None)

    def started(self, running: Running, slot: int) -> None:
        pass

    def ticked(self, running: Sequence[Running]) -> None:
        self._running = running
        now = time.monotonic()
        for each in running:
            if not each.warned and now - each.started > SLOW:
                each.warned = True
                self._console.print(
                    Text(f"slow: {each.item.id} ({each.item.flow}) has run for {SLOW:.0f} s, now in {each.stage}"),
                    style="yellow",
                )
        if self._live:
            self._live.update(self._picture())

    def finished(self, record: Record) -> None:
        self._done += 1
        kind = kind_of(record.outcome)
        self._outcomes[kind.name] = self._outcomes.get(kind.name, 0) + 1
        if self._live and not kind.is_failure:
            return
        line = Text(f"[{self._done:>{len(str(self._total))}}/{self._total}] ")
        line.append(f"{record.outcome:<14}", style=kind.style)
        line.append(f" {total_seconds(record):6.1f} s  {record.flow}  {record.id}")
        self._console.print(line, soft_wrap=True)

    def left(self) -> float | None:
        """Seconds that the rest will take at the pace so far; None before there is one."""
        fresh = self._done - self._before
        if not fresh:
            return None
        return (time.monotonic() - self._begun) / fresh * (self._total - self._done)

    def _picture(self) -> Group:
        share = self._done / self._total
        width = 30
        filled = round(share * width)
        line = Text("━" * filled, style="green") + Text("━" * (width - filled), style="dim")
        left = self.left()
        line.append(f" {self._done}/{self._total} cases")
        line.append(f", {time_text(time.monotonic() - self._begun)}")
        line.append(f", about {time_text(left)} left" if left is not None else "")
        for name, count in sorted(self._outcomes.items()):
            line.append(f"  {count} {name}", style=kind_of(name).style)
        table = Table.grid(padding=(0, 2))
        now = time.monotonic()
        for each in self._running:
            table.add_row(
                Text(f"{now - each.started:5.1f} s", style="yellow" if each.warned else "dim"),
                Text(each.stage, style="cyan"),
                Text(each.item.id, overflow="ellipsis", no_wrap=True),
            )
        return Group(line, table)
