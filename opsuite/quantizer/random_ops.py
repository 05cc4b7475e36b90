"""The ops that random models are made of, as text: `{x}` and `{y}` stand for tensors of shape (2, 4, ..., 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Value:
    """A tensor variable of the generated code; `kind` is float, int or bool."""

    name: str
    rank: int
    kind: str = "float"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Layer:
    """A module's constructor call, left open, with arguments that may be added. All of them keep the shape."""

    call: str
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Activation:
    """The forms in which an activation can be written; empty where there is none."""

    module: str
    function: str
    in_place: str = ""


_BIAS = {"bias": ("False",)}


def _convolution(rank: int) -> tuple[Layer, ...]:
    name = f"{rank - 2}d"
    layers = [
        Layer(f"nn.Conv{name}(4, 4, 3, padding=1", {**_BIAS, "groups": ("2", "4"), "padding_mode": ("'circular'",)}),
        Layer(f"nn.Conv{name}(4, 4, 1", _BIAS),
        Layer(f"nn.Conv{name}(4, 4, 3, padding='same'", {**_BIAS, "dilation": ("2",)}),
        Layer("nn.Linear(4, 4", _BIAS),
    ]
    if rank < 5:
        layers.append(Layer(f"nn.ConvTranspose{name}(4, 4, 3, padding=1", _BIAS))
    return tuple(layers)


LAYERS: dict[int, tuple[Layer, ...]] = {
    2: (Layer("nn.Linear(4, 4", _BIAS), Layer("nn.Linear(4, 4", _BIAS), Layer("nn.LayerNorm(4")),
    **{rank: _convolution(rank) for rank in (3, 4, 5)},
}

FUNCTIONAL_LAYERS: dict[int, tuple[tuple[str, str], ...]] = {
    2: (("F.linear({x}, {w})", "4, 4"), ("F.linear({x}, {w}.t())", "4, 4"), ("F.linear({x}, weight={w})", "4, 4")),
    3: (("F.conv1d({x}, {w}, None, 1, 1)", "4, 4, 3"), ("F.conv1d({x}, {w}, padding=[1])", "4, 4, 3")),
    4: (
        ("F.conv2d({x}, {w}, padding=1)", "4, 4, 3, 3"),
        ("F.conv2d({x}, {w}, None, [1], [1])", "4, 4, 3, 3"),
        ("F.conv2d({x}, weight={w}, bias={w}[0, 0, 0, :1].expand(4), padding=1)", "4, 4, 3, 3"),
        ("F.linear({x}, {w})", "4, 4"),
    ),
    5: (("F.conv3d({x}, {w}, None, 1, 1)", "4, 4, 3, 3, 3"), ("F.linear({x}, {w})", "4, 4")),
}

BATCH_NORMS = {2: "nn.BatchNorm1d", 3: "nn.BatchNorm1d", 4: "nn.BatchNorm2d", 5: "nn.BatchNorm3d"}

ACTIVATIONS: tuple[Activation, ...] = (
    Activation("nn.ReLU()", "F.relu({x})", "F.relu({x}, inplace=True)"),
    Activation("nn.ReLU(inplace=True)", "torch.relu({x})", "{x}.relu_()"),
    Activation("nn.ReLU6()", "F.relu6({x})", "F.relu6({x}, inplace=True)"),
    Activation("nn.LeakyReLU()", "F.leaky_relu({x})", "F.leaky_relu({x}, 0.2, inplace=True)"),
    Activation("nn.SiLU()", "F.silu({x})", "F.silu({x}, inplace=True)"),
    Activation("nn.ELU()", "F.elu({x})", "F.elu({x}, inplace=True)"),
    Activation("nn.CELU(alpha=2.0)", "F.celu({x})", "F.celu({x}, inplace=True)"),
    Activation("nn.SELU()", "F.selu({x})", "F.selu({x}, inplace=True)"),
    Activation("nn.Mish()", "F.mish({x})", "F.mish({x}, inplace=True)"),
    Activation("nn.Hardtanh()", "F.hardtanh({x}, 0.0, 6.0)", "F.hardtanh({x}, inplace=True)"),
    Activation("nn.Hardswish()", "F.hardswish({x})", "F.hardswish({x}, inplace=True)"),
    Activation("nn.Hardsigmoid()", "F.hardsigmoid({x})", "F.hardsigmoid({x}, inplace=True)"),
    Activation("nn.GELU()", "F.gelu({x}, approximate='tanh')"),
    Activation("nn.Sigmoid()", "torch.sigmoid({x})", "{x}.sigmoid_()"),
    Activation("nn.LogSigmoid()", "F.logsigmoid({x})"),
    Activation("nn.Tanh()", "torch.tanh({x})", "{x}.tanh_()"),
    Activation("nn.Softplus()", "F.relu({x}) * {x}"),
)

BINARY = ("{x} + {y}", "torch.add({x}, {y})", "{x} * {y}", "torch.mul({x}, {y})", "torch.where({x} > 0, {x}, {y})")
BINARY_SAME_KIND = ("{x} - {y}", "torch.add({x}, {y}, alpha=2)", "torch.maximum({x}, {y})")
BINARY_FLOAT = ("{x} / ({y} * {y} + 1.0)", "torch.cat([{x}, {y}], 1)[:, :4]", "{x} + {y} + {x}", "{x} * {y} + {y}")
PRODUCTS = ("torch.matmul({x}, {y})", "{x} @ {y}", "{x} @ {y}.transpose(-1, -2)", "{x}.matmul({y}).relu()")
BINARY_IN_PLACE = ("{x} += {y}", "{x} *= {y}", "{x}.add_({y})", "{x}.mul_({y})", "{x} -= {y}", "{x} += 1")
SCALAR = ("{x} + 1", "2 * {x}", "{x}.add(3)", "torch.mul({x}, 2)", "{x} - 1", "-{x}")

KEEPING = (
    "F.softmax({x}, -1)",
    "F.layer_norm({x}, (4,))",
    "torch.exp({x}.clamp(-1, 1))",
    "{x}.clamp(0, 6)",
    "torch.cat({x}.chunk(2, 1), 1)",
    "{x}.clone()",
    "{x}.reshape({x}.shape)",
    "F.dropout({x}, 0.1)",
    "{x}.transpose(1, -1).contiguous()",
    "{x}.abs()",
)

POOLS: dict[int, tuple[str, ...]] = {
    rank: (
        f"F.max_pool{rank - 2}d({{x}}, 3, 1, 1)",
        f"F.avg_pool{rank - 2}d({{x}}, 3, 1, 1)",
        f"F.adaptive_avg_pool{rank - 2}d({{x}}, 4)",
        f"torch.max_pool{rank - 2}d({{x}}, 3, 1, 1)",
    )
    for rank in (3, 4, 5)
}
POOL_MODULES: dict[int, tuple[str, ...]] = {
    rank: (
        f"nn.MaxPool{rank - 2}d(3, 1, 1)",
        f"nn.AvgPool{rank - 2}d(3, 1, 1)",
        f"nn.AdaptiveAvgPool{rank - 2}d(4)",
        f"nn.AdaptiveMaxPool{rank - 2}d(4)",
    )
    for rank in (3, 4, 5)
}
GLOBAL_POOLS: dict[int, str] = {
    rank: f"torch.flatten(F.adaptive_avg_pool{rank - 2}d({{x}}, 1), 1)" for rank in (3, 4, 5)
}

FLATTENS = ("torch.flatten({x}, {start})", "{x}.flatten({start})", "nn.Flatten({start})({x})")

RANK_DOWN = ("torch.mean({x}, -1)", "{x}.mean(-1)", "{x}.select(-1, 0)", "{x}[..., 1]", "{x}.amax(-1)")
RANK_UP = ("{x}.unsqueeze(-1).repeat({repeats}, 4)", "torch.stack([{x}, {x}, {x}, {x}], -1)")

KINDS: dict[str, tuple[tuple[str, str], ...]] = {
    "float": (("{x} > 0", "bool"), ("{x}.long()", "int"), ("{x}.to(torch.float32)", "float")),
    "int": (("{x}.float()", "float"), ("{x} == 1", "bool"), ("{x}.to(torch.int32).long()", "int")),
    "bool": (("{x}.float()", "float"), ("~{x}", "bool"), ("{x}.long()", "int")),
}

EXAMPLES = {
    "float": "torch.randn({shape})",
    "int": "torch.randint(0, 4, ({shape}))",
    "bool": "torch.randn({shape}) > 0",
}
