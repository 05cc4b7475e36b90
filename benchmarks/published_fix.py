"""The published fix for executorch's Core ML quantizer, to measure against: keep pattern graphs, hand out copies."""

from __future__ import annotations

import copy
from typing import Any

from opsuite.accelerate.pattern_cache import pattern_key


def cache_patterns() -> None:
    """Keeps every exported pattern by its arguments."""
    import executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils as utils

    build = utils._get_aten_graph_module
    kept: dict[Any, Any] = {}

    def cached(pattern: Any, example_inputs: Any, is_cuda: bool = False) -> Any:
        key = pattern_key(pattern, example_inputs, (is_cuda,), {})
        if key not in kept:
            kept[key] = build(pattern, example_inputs, is_cuda)
        return copy.deepcopy(kept[key])

    utils._get_aten_graph_module = cached
