"""torch copies a node's whole history, all earlier graphs included, each time a pass replays the node."""

from __future__ import annotations

from typing import Any

from opsuite.accelerate.seams import Installed, Part, Seam

_CREATE = Seam("torch.fx.traceback:NodeSource.__init__", sources=frozenset(("34fdb1e2be4cbdd9",)))
_COPY = Seam("torch.fx.traceback:NodeSource.__deepcopy__", absent=True)


def _install(_: dict[str, Any]) -> Installed:
    def share(self: Any, memo: dict[int, Any]) -> Any:
        # Nothing changes a NodeSource after it was made but its own memos of what it prints.
        return self

    return {_COPY.where: share}, None


PART = Part(
    "node-history",
    "share the records of where a graph node came from instead of copying all of them at every node of every pass",
    (_CREATE, _COPY),
    _install,
)
