"""Recurrent layers."""

import torch
from torch import nn, randn

from opsuite.cases.case import Case
from opsuite.cases.operators import OPERATORS


class LstmLinear(nn.Module):
    """An LSTM whose outputs feed a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.linear = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.lstm(x)[0])


OPERATORS.add(Case("operators/lstm/into_linear", lambda: (LstmLinear(), (randn(2, 4, 6),))))
