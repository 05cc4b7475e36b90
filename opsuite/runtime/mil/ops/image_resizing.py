"""Resizing and sampling of images: the last two dimensions are height and width."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.tensor_operation import bounded
from opsuite.runtime.mil.registry import Ints, Tensor, op, since, until


def sample_points(start: float, end: float, count: int, mode: str) -> Tensor:
    """Where `count` samples are taken between two points, in double precision, as the sampling mode says."""
    steps, extent = torch.arange(count, dtype=torch.float64), end - start + 1
    if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        if count == 1:
            return torch.tensor([(start + end) / 2 if mode == "ALIGN_CORNERS" else start], dtype=torch.float64)
        return start + steps * (end - start) / (count - 1)
    if mode == "DEFAULT":
        return start + steps * extent / count
    if mode == "OFFSET_CORNERS":
        delta = max(1.0, end - start) / count
        return start + (steps + 0.5) * delta
    if mode == "UNALIGN_CORNERS":
        return start + (steps + 0.5) * extent / count - 0.5
    raise OpError(f"sampling_mode: unknown {mode!r}")


def _grid(size: int, count: int, mode: str) -> Tensor:
    """The samples of a whole dimension of `size`; none lies outside it."""
    return sample_points(0.0, size - 1, count, mode).clamp(0, max(0, size - 1))


def linear_at(x: Tensor, axis: int, points: Tensor) -> Tensor:
    """Linear interpolation along a dimension at points inside it."""
    low = points.floor().long()
    high = (low + 1).clamp(max=x.shape[axis] - 1)
    shape = [1] * x.dim()
    shape[axis] = -1
    weight = (points - low).to(x.dtype if x.is_floating_point() else torch.float64).reshape(shape)
    below, above = x.index_select(axis, low), x.index_select(axis, high)
    # Not `below + weight * (above - below)`, which loses an infinite or large neighbour of weight 0.
    mixed = torch.where(weight == 0, below, below * (1 - weight) + above * weight)
    return mixed if x.is_floating_point() else mixed.round().to(x.dtype)


def _bilinear(x: Tensor, height: int, width: int, mode: str) -> Tensor:
    if x.dim() < 3:
        raise OpError(f"x: rank 3 or more is wanted, not {x.dim()}")
    bounded([*x.shape[:-2], height, width])
    rows = linear_at(x, x.dim() - 2, _grid(x.shape[-2], height, mode))
    return linear_at(rows, x.dim() - 1, _grid(x.shape[-1], width, mode))


def _nearest(x: Tensor, axis: int, places: Tensor) -> Tensor:
    return x.index_select(axis, places.floor().long().clamp(0, x.shape[axis] - 1))


@op("upsample_nearest_neighbor")
def upsample_nearest_neighbor(x: Tensor, scale_factor_height: float = 1, scale_factor_width: float = 1) -> Tensor:
    """The samples are spaced by the ratio of the sizes, not by the scale."""
    height, width = _scaled(x.shape[-2], scale_factor_height), _scaled(x.shape[-1], scale_factor_width)
    return resize_nearest_neighbor(x, height, width)


def _scaled(size: int, scale: float) -> int:
    if not scale > 0 or math.isinf(scale):
        raise OpError(f"a scale of {scale}")
    # A scale stored in fp32 may fall short of the one that was meant: 3 * 1.6666666 is 5.
    count = math.floor(size * scale + 1e-6 * size)
    return bounded([count])[0]


@op("resize_nearest_neighbor")
def resize_nearest_neighbor(x: Tensor, target_size_height: int, target_size_width: int) -> Tensor:
    for axis, count in ((x.dim() - 2, target_size_height), (x.dim() - 1, target_size_width)):
        x = _nearest(x, axis, torch.arange(bounded([count])[0], dtype=torch.float64) * x.shape[axis] / count)
    return x


@op("upsample_bilinear", opsets=until("CoreML5"))
def upsample_bilinear_15(
    x: Tensor, scale_factor_height: float = 1, scale_factor_width: float = 1, align_corners: bool = True
) -> Tensor:
    return upsample_bilinear(x, scale_factor_height, scale_factor_width, align_corners)


@op("upsample_bilinear", opsets=since("CoreML6"))
def upsample_bilinear(
    x: Tensor,
    scale_factor_height: float = 1,
    scale_factor_width: float = 1,
    align_corners: bool = True,
    half_pixel_centers: bool | None = None,
) -> Tensor:
    """The samples are spaced by the ratio of the sizes, not by the scale."""
    if half_pixel_centers is None:
        half_pixel_centers = not align_corners
    if align_corners and half_pixel_centers:
        raise OpError("align_corners and half_pixel_centers are both set")
    mode = "STRICT_ALIGN_CORNERS" if align_corners else "UNALIGN_CORNERS" if half_pixel_centers else "DEFAULT"
    height, width = _scaled(x.shape[-2], scale_factor_height), _scaled(x.shape[-1], scale_factor_width)
    return _bilinear(x, height, width, mode)


@op("resize_bilinear")
def resize_bilinear(
    x: Tensor, target_size_height: int = 1, target_size_width: int = 1, sampling_mode: str = "DEFAULT"
) -> Tensor:
    return _bilinear(x, target_size_height, target_size_width, sampling_mode)


@op("resize", opsets=since("CoreML7"))
def resize(
    x: Tensor, shape: Ints, resized_dims: int, interpolation_mode: str = "LINEAR", sampling_mode: str = "DEFAULT"
) -> Tensor:
    """The last `resized_dims` dimensions get the sizes at the end of `shape`, where 0 keeps what is there."""
    if not 0 <= resized_dims <= min(len(shape), x.dim()):
        raise OpError(f"resized_dims: {resized_dims} with a shape of {len(shape)} and rank {x.dim()}")
    for place in range(resized_dims):
        axis, wanted = x.dim() - 1 - place, shape[-1 - place]
        count = bounded([wanted])[0] or x.shape[axis]
        points = _grid(x.shape[axis], count, sampling_mode)
        if interpolation_mode == "LINEAR":
            x = linear_at(x, axis, points)
        elif interpolation_mode == "NEAREST_NEIGHBOR":
            x = _nearest(x, axis, points + 0.5)
        else:
            raise OpError(f"interpolation_mode: unknown {interpolation_mode!r}")
    return x


@op("crop")
def crop(x: Tensor, crop_height: Ints, crop_width: Ints) -> Tensor:
    height, width = x.shape[-2:]
    (top, bottom), (left, right) = crop_height, crop_width
    if min(top, bottom, left, right) < 0 or top + bottom > height or left + right > width:
        raise OpError(f"{crop_height} and {crop_width} cropped from {height} x {width}")
    return x[..., top : height - bottom, left : width - right]


@op("affine")
def affine(
    x: Tensor,
    transform_matrix: Tensor,
    output_height: int,
    output_width: int,
    sampling_mode: str,
    padding_mode: str,
    padding_value: float,
    coordinates_mode: str,
    align_corners: bool,
) -> Tensor:
    if coordinates_mode != "normalized_minus_one_to_one" or not align_corners:
        raise OpError("only normalized coordinates with align_corners are defined")
    theta = transform_matrix.reshape(-1, 2, 3).expand(len(x), 2, 3)
    places = F.affine_grid(theta, [len(x), x.shape[1], output_height, output_width], align_corners=True)
    return resample(x, places, sampling_mode, padding_mode, padding_value, coordinates_mode, True)


@op("resample")
def resample(
    x: Tensor,
    coordinates: Tensor,
    sampling_mode: str,
    padding_mode: str,
    padding_value: float,
    coordinates_mode: str,
    align_corners: bool,
) -> Tensor:
    """`x` (B, C, H, W) at `coordinates` (B, H2, W2, 2), which are pairs (x, y)."""
    if padding_mode not in ("constant", "border", "reflection", "symmetric"):
        raise OpError(f"padding_mode: unknown {padding_mode!r}")
    if sampling_mode not in ("bilinear", "nearest"):
        raise OpError(f"sampling_mode: unknown {sampling_mode!r}")
    sizes = torch.tensor([x.shape[-1], x.shape[-2]], dtype=torch.float32)
    pixels = _pixels(coordinates.float(), sizes, coordinates_mode, align_corners)
    # torch reflects at the centres of the outer pixels with align_corners, else at their edges.
    at_centres = padding_mode == "reflection" and min(x.shape[-2:]) > 1
    places = 2 * pixels / (sizes - 1) - 1 if at_centres else (2 * pixels + 1) / sizes - 1
    torch_mode = {"constant": "zeros", "border": "border"}.get(padding_mode, "reflection")
    shift = padding_value if padding_mode == "constant" else 0.0
    return F.grid_sample(x - shift, places, sampling_mode, torch_mode, at_centres) + shift


def _pixels(coordinates: Tensor, sizes: Tensor, mode: str, align_corners: bool) -> Tensor:
    if mode == "unnormalized":
        return coordinates
    if mode not in ("normalized_minus_one_to_one", "normalized_zero_to_one"):
        raise OpError(f"coordinates_mode: unknown {mode!r}")
    part = (coordinates + 1) / 2 if mode == "normalized_minus_one_to_one" else coordinates
    return part * (sizes - 1) if align_corners else part * sizes - 0.5
