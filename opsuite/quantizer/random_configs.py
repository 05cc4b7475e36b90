"""Random `LinearQuantizerConfig`s, as the text that makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

SETTINGS: dict[str, tuple[str, ...]] = {
    "activation_dtype": ("torch.quint8", "torch.float32"),
    "weight_dtype": ("'qint8'", "'quint8'", "'float32'", "'qint4'"),
    "weight_per_channel": ("True", "False"),
    "weight_observer": ("'moving_average_min_max'", "'min_max'"),
    "activation_observer": ("'moving_average_min_max'", "'min_max'"),
    "milestones": ("None", "[0, 1, 2, 3]"),
}
"""What a configuration may say; the first value of each is coremltools' default, and is drawn most often."""

OBSERVER_WITHOUT_EQUIVALENT = "'ema_min_max'"
"""PT2E has no observer of this type: whatever comes to it raises."""

TYPES = (
    "nn.Conv1d",
    "nn.Conv2d",
    "nn.Conv3d",
    "nn.Linear",
    "nn.ReLU",
    "nn.MaxPool2d",
    "F.linear",
    "F.conv2d",
    "torch.add",
    "operator.add",
    "operator.mul",
    "torch.matmul",
    "F.relu",
    "torch.flatten",
)
"""Modules and functions that a part of a configuration may be for."""


def config_text(draw: Callable[..., Any], names: Sequence[str], types: Sequence[str]) -> str:
    """A configuration with a global part and, now and then, parts for some of the `names` and `types`."""
    # All parts of a configuration have to name the same scheme and algorithm.
    common = ["quantization_scheme='affine'"] if _rarely(draw, 3) else []
    if _rarely(draw, 12):
        # What has no global part is held to the default algorithm.
        common.append("algorithm='learnable'")
        parts = [f"global_config=ModuleLinearQuantizerConfig({', '.join(common)})"]
    else:
        parts = [f"global_config={_part(draw, common, 4)}"]
    for argument, keys in (("module_type_configs", types), ("module_name_configs", [repr(name) for name in names])):
        if keys and _rarely(draw, 3):
            chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True))
            parts.append(f"{argument}={{{', '.join(f'{key}: {_part(draw, common, 3)}' for key in chosen)}}}")
    return f"LinearQuantizerConfig({', '.join(parts)})"


def _part(draw: Callable[..., Any], common: list[str], likely: int) -> str:
    if _rarely(draw, 8):
        return "None"
    given = [f"{name}={draw(st.sampled_from(values))}" for name, values in SETTINGS.items() if _rarely(draw, likely)]
    if _rarely(draw, 40):
        given = [entry for entry in given if not entry.startswith("activation_observer")]
        given.append(f"activation_observer={OBSERVER_WITHOUT_EQUIVALENT}")
    return f"ModuleLinearQuantizerConfig({', '.join([*common, *given])})"


def _rarely(draw: Callable[..., Any], once_in: int) -> bool:
    """True once in so many times; shrinks to False."""
    return bool(draw(st.integers(0, once_in - 1)) == once_in - 1)
