"""Convolutions."""

import torch
from torch import nn, randn

from opsuite.cases.case import Case
from opsuite.cases.operators import OPERATORS


class ConvSigmoidMean(nn.Module):
    """A convolution, a sigmoid, and the mean over the spatial axes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(5, 7, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.conv(x)).mean((2, 3))


def _conv(name: str, module, *shape: int) -> None:
    OPERATORS.add(Case(f"operators/{name}", lambda: (module(), (randn(*shape),))))


_conv("conv1d/plain", lambda: nn.Conv1d(6, 8, 3), 2, 6, 16)
_conv("conv1d/grouped_dilated_strided", lambda: nn.Conv1d(6, 9, 3, 2, 2, 2, groups=3), 2, 6, 20)
_conv("conv2d/plain", lambda: nn.Conv2d(3, 8, 3), 1, 3, 12, 10)
_conv("conv2d/stride@2x1", lambda: nn.Conv2d(3, 8, 3, stride=(2, 1), padding=1), 1, 3, 12, 10)
_conv("conv2d/bias_free_relu", lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.ReLU()), 1, 3, 12, 10)
_conv("conv2d/batch_norm_relu", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), 1, 3, 9, 9)
OPERATORS.add(
    Case(
        "operators/conv2d/channels_last",
        lambda: (ConvSigmoidMean(), (randn(2, 5, 9, 7).to(memory_format=torch.channels_last),)),
    )
)
