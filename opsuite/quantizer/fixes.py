"""What `CoreMLQuantizer(config, fixes=...)` does otherwise than ExecuTorch's quantizer."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Fix(str, Enum):
    """One departure from ExecuTorch's annotations, named by what it mends."""

    INTEGER_TENSORS = "integer_tensors"
    """Tensors that are not floating point are neither observed nor quantized; ops whose result is one are left alone.

    Without it they are observed, and calibration stops: fake quantization has no integer kernel."""

    SAME_OPERAND = "same_operand"
    """`x + x`, `x * x` and `x @ x` are quantized. Without it they stay float, since the pattern has two operands."""

    SHARED_WEIGHTS = "shared_weights"
    """Every layer that uses a weight is quantized. Without it only the first one is: the weight counts as taken."""

    MODULE_CONFIGS = "module_configs"
    """`module_name_configs` reach layers, and `module_type_configs` reach the layers inside modules of the type.

    Without it a layer named by a configuration stays float: the configuration is looked for at its weight too, which
    does not tell what module it is from. A type is only found where it is that of the innermost module, and only
    after a strict export."""

    HALF_PRECISION = "half_precision"
    """A model that computes in float16 or bfloat16 is refused. Without it the quantized model fails when lowered."""

    UNSUPPORTED_CONFIG = "unsupported_config"
    """Settings without effect on PT2E are refused: 4-bit weights, the learnable algorithm, milestones.

    Without it they are ignored; 4-bit weights silently become 8-bit ones."""


NONE: frozenset[Fix] = frozenset()
ALL: frozenset[Fix] = frozenset(Fix)


def parse_fixes(fixes: Iterable[Fix | str] | str) -> frozenset[Fix]:
    """The set of fixes that `fixes` names: their names, or "all" or "none".

    Raises:
        ValueError: an unknown name; the message lists those that are known.
    """
    if isinstance(fixes, str):
        named = {"all": ALL, "none": NONE}.get(fixes)
        if named is not None:
            return named
        fixes = (fixes,)
    try:
        return frozenset(Fix(fix) for fix in fixes)
    except ValueError as error:
        known = ", ".join(repr(fix.value) for fix in Fix)
        raise ValueError(f"{error}; fixes are {known}, or 'all' or 'none'") from None
