"""Whole models from transformers, built from configurations with random weights, small enough to compare in seconds."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from opsuite.cases.case import Case
from opsuite.cases.suite import CaseSuite
from opsuite.exits import Exit, OpsuiteError

NAME = "models"


def _first_output(model: Any) -> Any:
    import torch

    class FirstOutput(torch.nn.Module):
        """Exports want tensors, and these models return dictionaries."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs, return_dict=False)[0]

    return FirstOutput()


def _image(model: Any) -> tuple[Any, tuple[Any, ...]]:
    import torch

    return _first_output(model), (torch.randn(1, 3, 64, 64),)


def _resnet18() -> tuple[Any, tuple[Any, ...]]:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=64, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", num_labels=10
    )
    return _image(ResNetForImageClassification(config))


def _mobilenet_v2() -> tuple[Any, tuple[Any, ...]]:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return _image(MobileNetV2ForImageClassification(MobileNetV2Config(image_size=64, num_labels=10)))


def _bert() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=100,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=32,
        attn_implementation="eager",
    )
    return _first_output(BertModel(config)), (torch.randint(0, 100, (1, 16)),)


MODELS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "resnet18": _resnet18,
    "mobilenet_v2": _mobilenet_v2,
    "bert": _bert,
}


def suite() -> CaseSuite:
    """The models as a suite. Raises OpsuiteError where transformers is not installed."""
    if importlib.util.find_spec("transformers") is None:
        raise OpsuiteError(f"suite {NAME} needs transformers: pip install transformers", Exit.ENVIRONMENT)
    found = CaseSuite(NAME)
    for name, build in MODELS.items():
        found.add(Case(f"{NAME}/{name}", build))
    return found
