"""The smallest model of each pattern in the table, as a suite: compared one by one, they cover the whole table."""

from __future__ import annotations

from typing import Any

from opsuite.cases.case import Case
from opsuite.cases.suite import CaseSuite
from opsuite.quantizer.patterns import ACTIVATIONS, CORES, PATTERNS, Key, Rule

NAME = "patterns"

_CHANNELS, _SIZE = 4, 5


def suite() -> CaseSuite:
    """One case for each pattern, named after its key."""
    found = CaseSuite(NAME)
    for key in PATTERNS:
        found.add(Case(f"{NAME}/{key}", lambda key=key: pattern_model(key)))
    return found


def pattern_model(key: Key) -> tuple[Any, tuple[Any, ...]]:
    """A module that computes the pattern and nothing else, and its inputs."""
    import torch
    from torch import nn

    core = CORES[key.core]
    weighted = core.rule is Rule.WEIGHTED
    rank = int(key.core[-2]) if key.core.startswith("conv") else 0
    image = (_SIZE,) * rank

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if weighted:
                kernel = (3,) * rank
                self.weight = nn.Parameter(torch.randn(_CHANNELS, _CHANNELS, *kernel))
                self.bias = nn.Parameter(torch.randn(_CHANNELS))
            norms = (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
            self.norm = norms[rank](_CHANNELS) if key.batch_norm else nn.Identity()

        def forward(self, *inputs: Any) -> Any:
            if weighted:
                value = core.function(*inputs, self.weight, self.bias)
            else:
                # A copy, which an in-place core op overwrites instead of the model's input.
                value = core.function(inputs[0].clone(), inputs[1])
            value = self.norm(value)
            if key.activation is None:
                return value
            options = {"inplace": True} if key.in_place else {}
            return ACTIVATIONS[key.activation].function(value, **options)

    if weighted:
        return Chain(), (torch.randn(2, _CHANNELS, *image),)
    return Chain(), (torch.randn(_CHANNELS, _CHANNELS), torch.randn(_CHANNELS, _CHANNELS))
