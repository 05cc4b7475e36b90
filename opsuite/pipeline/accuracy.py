"""How far one tensor is from another, and how far it may be.

SQNR is the signal-to-quantization-noise ratio 20*log10(|reference| / |reference - actual|) in dB, with Frobenius
norms. SQNR about the mean takes the reference's own mean out of the signal, so that a large offset cannot hide
that the resolution around it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Thresholds:
    """What the comparison of a flow accepts; an output must meet all of them.

    Attributes:
        atol, rtol: every element must satisfy |actual - reference| <= atol + rtol * |reference|.
        sqnr_db: the least SQNR about the mean, in dB; not asked of an output that does not vary.
        reason: why these values.
    """

    atol: float = 1e-4
    rtol: float = 1e-3
    sqnr_db: float = 60.0
    reason: str = "float32 kernels: rounding of a reduction of some thousands of terms stays below 1e-3 relative"


SINGLE_PRECISION = Thresholds()
HALF_PRECISION = Thresholds(
    atol=1e-2, rtol=1e-2, sqnr_db=40.0, reason="fp16 keeps 11 bits, about 66 dB, of which a few ops may lose some"
)
STATIC_INT8 = Thresholds(
    atol=1e-1, rtol=4e-2, sqnr_db=20.0, reason="an output may differ from the converted program by a quantum or two"
)


class Accuracy(BaseModel):
    """Distance of one output from its reference.

    Attributes:
        max_abs: largest absolute difference; infinite where one side alone is NaN or infinite.
        mae: mean absolute difference.
        sqnr_db: None for an empty output or one whose reference is all zero while `actual` is not.
        sqnr_centred_db: None where the reference does not vary.
    """

    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="strings")

    max_abs: float
    mae: float
    sqnr_db: float | None = None
    sqnr_centred_db: float | None = None


def _ratio_db(signal: float, noise: float) -> float | None:
    if noise == 0:
        return math.inf
    if signal == 0:
        return None
    return 20 * math.log10(signal / noise)


def measure(actual: torch.Tensor, reference: torch.Tensor) -> Accuracy:
    """Distance of `actual` from `reference`: any real or bool dtype, the same shape.

    Elements that are NaN on both sides, or the same infinity, count as equal. Raises ValueError for another shape.
    """
    import torch

    if actual.shape != reference.shape:
        raise ValueError(f"shapes differ: {tuple(actual.shape)} and {tuple(reference.shape)}")
    got, want = actual.detach().to(torch.float64).flatten(), reference.detach().to(torch.float64).flatten()
    same = (got == want) | (got.isnan() & want.isnan())
    finite = got.isfinite() & want.isfinite()
    error = torch.where(same, 0.0, (got - want).abs())
    error = torch.where(same | finite, error, math.inf)
    if error.numel() == 0:
        return Accuracy(max_abs=0.0, mae=0.0, sqnr_db=None, sqnr_centred_db=None)
    signal = want[want.isfinite()]
    centred = signal - signal.mean() if signal.numel() else signal
    # A constant's distance from its own computed mean is rounding, not signal.
    varies = bool(signal.numel()) and bool(signal.max() > signal.min())
    noise = float(torch.linalg.vector_norm(error))
    return Accuracy(
        max_abs=float(error.max()),
        mae=float(error.mean()),
        sqnr_db=_decibels(signal, noise),
        sqnr_centred_db=_decibels(centred, noise) if varies else None,
    )


def _decibels(signal: torch.Tensor, noise: float) -> float | None:
    import torch

    if math.isinf(noise):
        return -math.inf
    return _ratio_db(float(torch.linalg.vector_norm(signal)), noise)


def disagreement(actual: torch.Tensor, reference: torch.Tensor, thresholds: Thresholds) -> str | None:
    """What is wrong with an output, with figures and the thresholds; None where nothing is.

    Shape and dtype must be the reference's; integers and bools must be equal.
    """
    import torch

    if actual.shape != reference.shape:
        return f"shape {tuple(actual.shape)} instead of {tuple(reference.shape)}"
    if actual.dtype != reference.dtype:
        return f"dtype {dtype_name(actual)} instead of {dtype_name(reference)}"
    if not reference.is_floating_point():
        different = int((actual != reference).sum())
        return f"{different} of {reference.numel()} {dtype_name(reference)} elements differ" if different else None
    accuracy = measure(actual, reference)
    close = torch.isclose(
        actual.to(torch.float64),
        reference.to(torch.float64),
        atol=thresholds.atol,
        rtol=thresholds.rtol,
        equal_nan=True,
    )
    if not bool(close.all()):
        return (
            f"{int((~close).sum())} of {close.numel()} elements differ by more than "
            f"{thresholds.atol:g} + {thresholds.rtol:g} * |reference| (max abs {accuracy.max_abs:.4g})"
        )
    centred = accuracy.sqnr_centred_db
    if centred is not None and centred < thresholds.sqnr_db:
        return (
            f"SQNR about the mean {centred:.1f} dB is below {thresholds.sqnr_db:g} dB (max abs {accuracy.max_abs:.4g})"
        )
    return None


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def worst_sqnr_db(accuracies: Sequence[Accuracy]) -> float | None:
    """The least SQNR about the mean, or plain SQNR where there is none; None without a figure."""
    figures = [a.sqnr_db if a.sqnr_centred_db is None else a.sqnr_centred_db for a in accuracies]
    return min((figure for figure in figures if figure is not None), default=None)
