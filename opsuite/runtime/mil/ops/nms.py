"""Non-maximum suppression."""

from __future__ import annotations

import torch

from opsuite.runtime.mil.ops.tensor_operation import bounded
from opsuite.runtime.mil.registry import Tensor, op, since, until


@op("non_maximum_suppression", opsets=until("CoreML6"))
def non_maximum_suppression_15(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: float,
    score_threshold: float,
    max_boxes: int,
    per_class_suppression: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`boxes` (n, B, 4) by centre and size, `scores` (n, B, K).

    Returns:
        Selected boxes (n, max_boxes, 4), their scores (n, max_boxes, K), indices (n, max_boxes) and counts (n): what is
        not selected is 0, as an index -1.
    """
    bounded([len(boxes), max_boxes, 4 + scores.shape[-1]])
    kept_boxes = torch.zeros(len(boxes), max_boxes, 4)
    kept_scores = torch.zeros(len(boxes), max_boxes, scores.shape[-1])
    indices = torch.full((len(boxes), max_boxes), -1, dtype=torch.int32)
    counts = []
    for image in range(len(boxes)):
        kept = _select(boxes[image], scores[image], iou_threshold, score_threshold, per_class_suppression)[:max_boxes]
        counts.append(len(kept))
        kept_boxes[image, : len(kept)] = boxes[image, kept]
        kept_scores[image, : len(kept)] = scores[image, kept]
        indices[image, : len(kept)] = torch.tensor(kept, dtype=torch.int32)
    return kept_boxes, kept_scores, indices, torch.tensor(counts, dtype=torch.int32)


@op("non_maximum_suppression", opsets=since("CoreML7"))
def non_maximum_suppression(
    boxes: Tensor, scores: Tensor, iou_threshold: float, max_boxes: int, per_class_suppression: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The same with the boxes in the last dimension: `boxes` (n, 4, B), `scores` (n, K, B)."""
    kept_boxes, kept_scores, indices, _ = non_maximum_suppression_15(
        boxes.transpose(1, 2),
        scores.transpose(1, 2),
        iou_threshold,
        float("-inf"),
        max_boxes,
        per_class_suppression,
    )
    return kept_boxes.transpose(1, 2), kept_scores.transpose(1, 2), indices


def _select(boxes: Tensor, scores: Tensor, iou: float, least: float, per_class: bool) -> list[int]:
    """Indices of the boxes that are kept, best first."""
    best, classes = scores.max(dim=1)
    order = [index for index in torch.argsort(best, descending=True, stable=True).tolist() if best[index] >= least]
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    area = boxes[:, 2] * boxes[:, 3]
    kept: list[int] = []
    for index in order:
        rivals = torch.tensor(
            [each for each in kept if not per_class or classes[each] == classes[index]], dtype=torch.int64
        )
        size = (torch.minimum(high[rivals], high[index]) - torch.maximum(low[rivals], low[index])).clamp(min=0)
        common = size[:, 0] * size[:, 1]
        if not bool((common > iou * (area[rivals] + area[index] - common)).any()):
            kept.append(index)
    return kept
