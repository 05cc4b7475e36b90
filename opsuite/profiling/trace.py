"""Call stacks of a block, as a file for speedscope (https://www.speedscope.app reads it in the browser)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opsuite.exits import Exit, OpsuiteError


def require_tracer() -> None:
    """Raises OpsuiteError where call stacks cannot be sampled."""
    if importlib.util.find_spec("pyinstrument") is None:
        raise OpsuiteError("--trace needs pyinstrument: pip install 'opsuite[profile]'", Exit.ENVIRONMENT)


@contextmanager
def traced(path: Path | None) -> Iterator[None]:
    """Writes the block's call stacks to `path`; without a path nothing is sampled."""
    if path is None:
        yield
        return
    from pyinstrument import Profiler
    from pyinstrument.renderers import SpeedscopeRenderer

    profiler = Profiler()
    with profiler:
        yield
    path.write_text(profiler.output(SpeedscopeRenderer()), "utf-8")
