"""Two sides of one piece of work, taken in turns in one process, so that whatever slows the machine slows both."""

from __future__ import annotations

import contextlib
import logging
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]


def quiet() -> None:
    """Keep what the libraries say about themselves off the terminal; to be called before they are imported."""
    os.environ["TQDM_DISABLE"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


@dataclass(frozen=True)
class Ratio:
    name: str
    slow: float
    fast: float

    @property
    def value(self) -> float:
        return self.slow / self.fast

    def __str__(self) -> str:
        return f"{self.name:34} {self.slow:9.3f} s {self.fast:9.3f} s {self.value:8.2f}x"


HEADER = f"{'':34} {'without':>11} {'with':>11} {'ratio':>9}"


def in_turns(
    name: str, slow: Work, fast: Work, rounds: int, around_slow: Callable[[], Any] = contextlib.nullcontext
) -> Ratio:
    """Median CPU seconds of each side over `rounds` rounds; the first side alternates.

    `around_slow` makes the context of the slow side, whose entering and leaving is not measured.
    """
    seconds: dict[int, list[float]] = {0: [], 1: []}
    for turn in range(rounds):
        for side in ((0, 1), (1, 0))[turn % 2]:
            with (around_slow, contextlib.nullcontext)[side]():
                start = time.process_time()
                (slow, fast)[side]()
                seconds[side].append(time.process_time() - start)
    return Ratio(name, statistics.median(seconds[0]), statistics.median(seconds[1]))


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
