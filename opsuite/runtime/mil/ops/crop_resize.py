"""Cropping and resizing of regions of interest."""

from __future__ import annotations

from typing import Any

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.ops.image_resizing import linear_at, sample_points
from opsuite.runtime.mil.ops.tensor_operation import bounded
from opsuite.runtime.mil.registry import Tensor, op, since


def _corners(box: Tensor, mode: str) -> list[float]:
    """top, left, bottom, right of a box (4)."""
    a, b, c, d = box.tolist()
    if mode.endswith("WIDTH_FIRST"):
        a, b, c, d = b, a, d, c
    if mode.startswith("CENTER_SIZE"):
        return [a - c / 2, b - d / 2, a + c / 2, b + d / 2]
    if not mode.startswith("CORNERS"):
        raise OpError(f"box_coordinate_mode: unknown {mode!r}")
    return [a, b, c, d]


def _cropped(image: Tensor, box: Tensor, options: tuple[Any, ...], pad_value: float | None) -> Tensor:
    """One box (4) of an image (C, H, W). Points outside are `pad_value`, or the nearest edge where that is None."""
    height, width, normalized, scale, box_mode, mode = options
    bounded([len(image), height, width])
    rows, columns = image.shape[-2:]
    by_row, by_column = (scale * (rows - 1), scale * (columns - 1)) if normalized else (scale, scale)
    top, left, bottom, right = _corners(box.double(), box_mode)
    y = sample_points(top * by_row, bottom * by_row, height, mode)
    x = sample_points(left * by_column, right * by_column, width, mode)
    result = linear_at(linear_at(image, 1, y.clamp(0, rows - 1)), 2, x.clamp(0, columns - 1))
    if pad_value is None:
        return result
    inside = ((y >= 0) & (y <= rows - 1)).unsqueeze(1) & ((x >= 0) & (x <= columns - 1))
    return torch.where(inside, result, torch.tensor(pad_value, dtype=result.dtype))


def _crop_resize_roi(x: Tensor, roi: Tensor, pad_value: float | None, options: tuple[Any, ...]) -> Tensor:
    """`roi` (N, 1, 4 or 5, 1, 1): with 5, the first is the index of the image."""
    if roi.dim() != 5 or roi.shape[2] not in (4, 5):
        raise OpError(f"roi: (N, 1, 4 or 5, 1, 1) is wanted, not {list(roi.shape)}")
    crops = []
    for box in roi.reshape(len(roi), -1):
        images = x if len(box) == 4 else x[int(box[0])].unsqueeze(0)
        crops.append(torch.stack([_cropped(image, box[-4:], options, pad_value) for image in images]))
    return torch.stack(crops)


@op("crop_resize", opsets=("CoreML5",))
def crop_resize_15(
    x: Tensor,
    roi: Tensor,
    target_height: int = 1,
    target_width: int = 1,
    normalized_coordinates: bool = False,
    spatial_scale: float = 1.0,
    box_coordinate_mode: str = "CORNERS_HEIGHT_FIRST",
    sampling_mode: str = "DEFAULT",
) -> Tensor:
    options = (target_height, target_width, normalized_coordinates, spatial_scale, box_coordinate_mode, sampling_mode)
    return _crop_resize_roi(x, roi, None, options)


@op("crop_resize", opsets=("CoreML6",))
def crop_resize_16(
    x: Tensor,
    roi: Tensor,
    target_height: int = 1,
    target_width: int = 1,
    normalized_coordinates: bool = False,
    spatial_scale: float = 1.0,
    box_coordinate_mode: str = "CORNERS_HEIGHT_FIRST",
    sampling_mode: str = "DEFAULT",
    pad_value: float = 0.0,
) -> Tensor:
    options = (target_height, target_width, normalized_coordinates, spatial_scale, box_coordinate_mode, sampling_mode)
    return _crop_resize_roi(x, roi, pad_value, options)


@op("crop_resize", opsets=since("CoreML7"))
def crop_resize(
    x: Tensor,
    boxes: Tensor,
    box_indices: Tensor | None = None,
    target_height: int = 1,
    target_width: int = 1,
    normalized_coordinates: bool = False,
    spatial_scale: float = 1.0,
    box_coordinate_mode: str = "CORNERS_HEIGHT_FIRST",
    sampling_mode: str = "DEFAULT",
    pad_value: float = 0.0,
) -> Tensor:
    """`x` (B, C, H, W), `boxes` (N, 4), `box_indices` (N): the image of each box. Gives (N, C, height, width)."""
    indices = list(range(len(boxes))) if box_indices is None else [int(each) for each in box_indices.tolist()]
    if len(indices) != len(boxes) or any(not 0 <= index < len(x) for index in indices):
        raise OpError(f"{len(boxes)} boxes of images {indices}, where there are {len(x)}")
    options = (target_height, target_width, normalized_coordinates, spatial_scale, box_coordinate_mode, sampling_mode)
    return torch.stack([_cropped(x[index], box, options, pad_value) for index, box in zip(indices, boxes, strict=True)])
