"""Garbage collection: `ct.convert` runs a full one each time, over everything the imports made."""

from __future__ import annotations

import gc
import types
from typing import Any

from opsuite.accelerate.seams import Installed, Part, Seam

_CONVERT_GC = Seam("coremltools.converters._converters_entry:gc")


def _install_convert(originals: dict[str, Any]) -> Installed:
    class WithoutCollect(types.ModuleType):
        """The gc module as `ct.convert` sees it: its collect leaves the work to the automatic collector."""

        def collect(self, generation: int = 2) -> int:
            return 0

        def __getattr__(self, name: str) -> Any:
            return getattr(originals[_CONVERT_GC.where], name)

    return {_CONVERT_GC.where: WithoutCollect("gc")}, None


CONVERT = Part(
    "convert-gc",
    "coremltools' ct.convert: leave garbage to the automatic collector instead of a full collection per call",
    (_CONVERT_GC,),
    _install_convert,
)


def _install_freeze(_: dict[str, Any]) -> Installed:
    if gc.get_freeze_count():
        # Someone froze before; thawing at the end would undo their freeze as well.
        return {}, None
    gc.collect()
    gc.freeze()
    return {}, gc.unfreeze


FREEZE = Part(
    "freeze-gc",
    "take what the imports made out of the reach of the garbage collector",
    (),
    _install_freeze,
)


# A lowering makes and keeps hundreds of thousands of objects; the default of 700 walks the young ones all the time.
_THRESHOLDS = (50_000, 20, 100)


def _install_thresholds(_: dict[str, Any]) -> Installed:
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _THRESHOLDS[0]:
        return {}, None
    gc.set_threshold(*_THRESHOLDS)
    return {}, lambda: gc.set_threshold(*before)


THRESHOLDS = Part(
    "gc-thresholds",
    "let the garbage collector wait for 50,000 new objects instead of 700",
    (),
    _install_thresholds,
)
