"""Elementwise arithmetic."""

import torch
from torch import randn

from opsuite.cases.case import Case, function_module
from opsuite.cases.operators import OPERATORS


def _binary(name: str, function, x, y) -> None:
    OPERATORS.add(Case(f"operators/{name}", lambda: (function_module(function), (x(), y()))))


_binary("add/same_shape", torch.add, lambda: randn(3, 4), lambda: randn(3, 4))
_binary("add/broadcast", torch.add, lambda: randn(2, 1, 4), lambda: randn(3, 1))
_binary("add/alpha@2", lambda x, y: torch.add(x, y, alpha=2), lambda: randn(12), lambda: randn(12))
_binary("add/rank0", torch.add, lambda: torch.tensor(1.5), lambda: torch.tensor(2.0))
_binary("add/itself", lambda x, y: x + x + y, lambda: randn(3, 4), lambda: randn(3, 4))
_binary("sub/alpha@3", lambda x, y: torch.sub(x, y, alpha=3), lambda: randn(12), lambda: randn(12))
_binary("sub/same_shape", torch.sub, lambda: randn(3, 4), lambda: randn(3, 4))
_binary("mul/same_shape", torch.mul, lambda: randn(3, 4), lambda: randn(3, 4))
_binary("mul/rank0", torch.mul, lambda: randn(3, 4), lambda: torch.tensor(2.0))
_binary("div/same_shape", torch.div, lambda: randn(3, 4), lambda: randn(3, 4).abs() + 1)
