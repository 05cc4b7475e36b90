"""Pattern builds of executorch's Core ML quantizer: how many, how long, and how many are distinct.

Builds are told apart by the arguments that they were made from. Class names would not do: every pattern class is local
to its builder, so that different patterns share a name.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opsuite.accelerate.pattern_cache import Unkeyed, pattern_key


@dataclass
class Builds:
    """What was built while it was being counted.

    Attributes:
        keys: the arguments of each build, in order.
        seconds: seconds of each build.
    """

    keys: list[Hashable] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@contextmanager
def counting_builds() -> Iterator[Builds]:
    """Counts the exports that executorch's quantizer makes of its patterns inside the block."""
    from executorch.backends.apple.coreml.quantizer import _coreml_quantizer_utils as utils

    export = utils._get_aten_graph_module_for_pattern
    builds = Builds()

    def counted(pattern: Any, example_inputs: Any, *arguments: Any) -> Any:
        try:
            builds.keys.append(pattern_key(pattern, example_inputs, arguments, {}))
        except Unkeyed:
            builds.keys.append(object())
        start = time.perf_counter()
        try:
            return export(pattern, example_inputs, *arguments)
        finally:
            builds.seconds.append(time.perf_counter() - start)

    utils._get_aten_graph_module_for_pattern = counted
    try:
        yield builds
    finally:
        utils._get_aten_graph_module_for_pattern = export
