"""The parts, in the order they are applied."""

from __future__ import annotations

from opsuite.accelerate import (
    collection,
    composite_ops,
    coreml_quantizer,
    fake_results,
    mil_checks,
    provenance,
    qat_fold,
    replay_cost,
)
from opsuite.accelerate.seams import Part

_PATTERNS: dict[str, tuple[Part, ...]] = {
    "cache": (coreml_quantizer.EXECUTORCH, coreml_quantizer.COREMLTOOLS),
    # Annotations of Core ML Tools' copy are of torch's own classes, which opsuite's quantizer does not make.
    "table": (coreml_quantizer.EXECUTORCH_TABLE, coreml_quantizer.COREMLTOOLS),
}

_LOWERING: tuple[Part, ...] = (
    qat_fold.PART,
    collection.CONVERT,
    composite_ops.LOOKUP,
    composite_ops.OVERRIDE,
    provenance.PART,
    fake_results.PART,
    replay_cost.MAP,
    replay_cost.DELEGATE,
    mil_checks.PART,
    mil_checks.TYPES,
    collection.FREEZE,
    collection.THRESHOLDS,
)

PATTERN_STRATEGIES = tuple(_PATTERNS)
DEFAULT_PATTERNS = "cache"


def parts_for(patterns: str) -> tuple[Part, ...]:
    if patterns not in _PATTERNS:
        raise ValueError(f"no pattern strategy named {patterns!r}; strategies are {', '.join(_PATTERNS)}")
    return (*_PATTERNS[patterns], *_LOWERING)


PARTS = tuple(part.name for part in parts_for(DEFAULT_PATTERNS))
