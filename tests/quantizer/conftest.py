from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F

os.environ["TQDM_DISABLE"] = "1"

UTILS = "executorch.backends.apple.coreml.quantizer._coreml_quantizer_utils"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def capture() -> Callable[..., torch.fx.GraphModule]:
    """The graph module of a module, or of a function."""

    def capture(what, *inputs, training=False, strict=True, **options) -> torch.fx.GraphModule:
        module = what if isinstance(what, torch.nn.Module) else _Function(what)
        return torch.export.export(module.train(training), inputs, strict=strict, **options).module()

    return capture


class _Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.fixture(scope="module")
def oracle() -> Iterator[None]:
    """ExecuTorch's quantizer with two activations instead of fifteen: a seventh of the exports, once a session."""
    from opsuite.quantizer.equivalence import comparing

    with pytest.MonkeyPatch.context() as patch, comparing():
        patch.setattr(f"{UTILS}._supported_activations", (F.relu,))
        patch.setattr(f"{UTILS}._supported_activations_no_inplace", (F.sigmoid,))
        yield
