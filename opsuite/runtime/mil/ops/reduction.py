"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import torch

from opsuite.runtime.mil.registry import Ints, Tensor, op, since, until


def _reduce(name: str, function: Callable[[Tensor, list[int], bool], Tensor]) -> None:
    def reduction(x: Tensor, axes: Ints | None = None, keep_dims: bool = False) -> Tensor:
        over = sorted({axis % max(1, x.dim()) for axis in (range(x.dim()) if axes is None else axes)})
        if x.is_floating_point() or name in ("reduce_max", "reduce_min"):
            return function(x, over, keep_dims)
        if name in ("reduce_sum", "reduce_prod", "reduce_l1_norm", "reduce_sum_square"):
            return function(x.to(torch.int64), over, keep_dims)
        # What is not whole is cut off, as the result has the integers' type.
        return function(x.double(), over, keep_dims).trunc().to(torch.int64)

    op(name)(reduction)


def _prod(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in reversed(axes):
        x = torch.prod(x, axis, keepdim=keep)
    return x


for _name, _function in {
    "reduce_l1_norm": lambda x, axes, keep: x.abs().sum(axes, keepdim=keep),
    "reduce_l2_norm": lambda x, axes, keep: x.square().sum(axes, keepdim=keep).sqrt(),
    "reduce_log_sum": lambda x, axes, keep: x.sum(axes, keepdim=keep).log(),
    "reduce_log_sum_exp": lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep),
    "reduce_max": lambda x, axes, keep: torch.amax(x, axes, keepdim=keep),
    "reduce_mean": lambda x, axes, keep: x.mean(axes, keepdim=keep),
    "reduce_min": lambda x, axes, keep: torch.amin(x, axes, keepdim=keep),
    "reduce_prod": _prod,
    "reduce_sum": lambda x, axes, keep: x.sum(axes, keepdim=keep),
    "reduce_sum_square": lambda x, axes, keep: x.square().sum(axes, keepdim=keep),
}.items():
    _reduce(_name, _function)


def _arg(name: str, function: Callable[..., Tensor]) -> None:
    """The first of equal elements. `output_dtype` came with iOS17; the declared type says the same."""

    def old(x: Tensor, axis: int = -1, keep_dims: bool = False) -> Tensor:
        return function(x, axis, keepdim=keep_dims)

    def new(x: Tensor, axis: int = -1, keep_dims: bool = False, output_dtype: str = "int32") -> Tensor:
        return function(x, axis, keepdim=keep_dims)

    op(name, opsets=until("CoreML6"))(old)
    op(name, opsets=since("CoreML7"))(new)


_arg("reduce_argmax", torch.argmax)
_arg("reduce_argmin", torch.argmin)
