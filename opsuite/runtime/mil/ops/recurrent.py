"""Recurrent layers: the steps of a sequence one after the other, `x` (s, b, I)."""

from __future__ import annotations

from collections.abc import Callable

import torch

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Tensor, op, since, until

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "linear": lambda x: x,
    "hard_sigmoid": lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
    "sigmoid_hard": lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
    # Its factors, 1 and 1, cannot be set here.
    "scaled_tanh": torch.tanh,
}


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    if name not in _ACTIVATIONS:
        raise OpError(f"unknown activation {name!r}; known: {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]


def _sequence(x: Tensor, direction: str) -> Tensor:
    if x.dim() != 3 or not len(x):
        raise OpError(f"x: a sequence (s, b, I) is wanted, not shape {list(x.shape)}")
    if direction not in ("forward", "reverse"):
        raise OpError(f"direction: unknown {direction!r}")
    return x.flip(0) if direction == "reverse" else x


def _outputs(steps: list[Tensor], whole: bool) -> Tensor:
    """All steps (s, b, H) in the order in which they were made, or the last one (1, b, H).

    With direction "reverse" the first of them belongs to the end of the sequence. Only a bidirectional LSTM puts its
    way back into the order of the sequence.
    """
    return torch.stack(steps) if whole else steps[-1].unsqueeze(0)


@op("rnn")
def rnn(
    x: Tensor,
    initial_h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    activation: str = "tanh",
) -> tuple[Tensor, Tensor]:
    """The outputs, and the last state (b, H)."""
    act, h, steps = _activation(activation), initial_h, []
    shift = bias if bias is not None else torch.zeros(len(weight_ih))
    for step in _sequence(x, direction):
        h = act(step @ weight_ih.T + h @ weight_hh.T + shift)
        steps.append(h)
    return _outputs(steps, output_sequence), h


@op("gru", opsets=until("CoreML7"))
def gru_15(
    x: Tensor,
    initial_h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    recurrent_activation: str = "sigmoid",
    activation: str = "tanh",
) -> tuple[Tensor, Tensor]:
    return gru(
        x,
        initial_h,
        weight_ih,
        weight_hh,
        bias,
        direction,
        output_sequence,
        recurrent_activation,
        activation,
    )


@op("gru", opsets=since("CoreML8"))
def gru(
    x: Tensor,
    initial_h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    recurrent_activation: str = "sigmoid",
    activation: str = "tanh",
    reset_after: bool = False,
    input_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The outputs, and the last state (b, H). `reset_after` applies the reset gate to the product, not to the state."""
    gate, act, steps = _activation(recurrent_activation), _activation(activation), []
    h, zeros = initial_h, torch.zeros(len(weight_ih))
    # The weights are in the order reset, output, update.
    w_r, w_o, w_z = weight_hh.chunk(3)
    b_r, b_o, b_z = (zeros if bias is None else bias).chunk(3)
    i_r, i_o, i_z = (zeros if input_bias is None else input_bias).chunk(3)
    for step in _sequence(x, direction):
        x_r, x_o, x_z = (step @ weight_ih.T).chunk(3, -1)
        r = gate(x_r + i_r + h @ w_r.T + b_r)
        z = gate(x_z + i_z + h @ w_z.T + b_z)
        o = act(x_o + i_o + (r * (h @ w_o.T + b_o) if reset_after else (r * h) @ w_o.T + b_o))
        h = (1 - z) * o + z * h
        steps.append(h)
    return _outputs(steps, output_sequence), h


class _Lstm:
    """One direction of an LSTM. Gates are in the order input, forget, output, cell."""

    def __init__(
        self,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor | None,
        peephole: Tensor | None,
        activations: tuple[str, str, str],
        clip: float | None,
    ) -> None:
        self.weight_ih, self.weight_hh = weight_ih, weight_hh
        self.bias = torch.zeros(len(weight_ih)) if bias is None else bias
        self.peepholes = None if peephole is None else peephole.chunk(3)
        self.gate, self.cell, self.output = (_activation(name) for name in activations)
        self.clip = clip

    def run(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """`x` in the order in which it is read. Gives the states of all steps, the last one, the last cell."""
        steps = []
        for step in x:
            gates = step @ self.weight_ih.T + h @ self.weight_hh.T + self.bias
            i, f, o, z = gates.chunk(4, -1)
            if self.peepholes is not None:
                i, f = i + c * self.peepholes[0], f + c * self.peepholes[1]
            c = self.gate(f) * c + self.gate(i) * self.cell(z)
            if self.clip is not None:
                c = c.clamp(-self.clip, self.clip)
            if self.peepholes is not None:
                o = o + c * self.peepholes[2]
            h = self.gate(o) * self.output(c)
            steps.append(h)
        return steps, h, c


@op("lstm")
def lstm(
    x: Tensor,
    initial_h: Tensor,
    initial_c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    peephole: Tensor | None = None,
    weight_ih_back: Tensor | None = None,
    weight_hh_back: Tensor | None = None,
    bias_back: Tensor | None = None,
    peephole_back: Tensor | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    recurrent_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    activation: str = "tanh",
    clip: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs (s or 1, b, D * H), the last state and the last cell (b, D * H); D is 2 where both directions run."""
    names = (recurrent_activation, cell_activation, activation)
    layer = _Lstm(weight_ih, weight_hh, bias, peephole, names, clip)
    if direction != "bidirectional":
        steps, h, c = layer.run(_sequence(x, direction), initial_h, initial_c)
        return _outputs(steps, output_sequence), h, c
    if weight_ih_back is None or weight_hh_back is None:
        raise OpError("direction is bidirectional, and there are no weights for the way back")
    back = _Lstm(weight_ih_back, weight_hh_back, bias_back, peephole_back, names, clip)
    (h_there, h_back), (c_there, c_back) = initial_h.chunk(2, -1), initial_c.chunk(2, -1)
    steps_there, h_there, c_there = layer.run(_sequence(x, "forward"), h_there, c_there)
    steps_back, h_back, c_back = back.run(_sequence(x, "reverse"), h_back, c_back)
    outputs = [
        _outputs(steps_there, output_sequence),
        _outputs(steps_back[::-1] if output_sequence else steps_back, output_sequence),
    ]
    return torch.cat(outputs, -1), torch.cat([h_there, h_back], -1), torch.cat([c_there, c_back], -1)
