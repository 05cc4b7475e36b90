"""Converted models against torch."""

import numpy as np
import pytest
import torch
from conversion import convert, named
from torch import nn
from torch.nn import functional as F

from opsuite.runtime import mil


class Mixed(nn.Module):
    """Convolutions, pooling, normalization, resizing and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding="same", groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.hardswish(self.norm(self.first(x)))
        x = F.max_pool2d(self.depthwise(x), 3, 2, 1)
        x = F.interpolate(self.up(x), scale_factor=2, mode="bilinear", align_corners=False)
        x = F.avg_pool2d(F.gelu(x), 2)
        return torch.softmax(self.head(x.mean((2, 3))), -1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).reshape(2, 6, 3, 4, 4).permute(2, 0, 3, 1, 4)
        mask = torch.tril(torch.ones(6, 6)) > 0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Slices(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([x[:, ::2], x[:, 1::2].flip(1)], 1)
        y = torch.gather(y, 1, torch.tensor([[0, 2, 1], [3, 3, 0]]))
        values, places = torch.topk(y, 2)
        return values * places + torch.cumsum(y, 1)[:, :2] - torch.where(y > 0, y, -y).amax(1, keepdim=True)


CASES = {
    "mixed": (Mixed, (2, 3, 16, 16)),
    "attention": (Attention, (2, 6, 16)),
    "lstm": (Lstm, (5, 2, 4)),
    "slices": (Slices, (2, 4)),
}


@pytest.mark.parametrize("target", ["iOS15", "iOS18"])
@pytest.mark.parametrize("case", CASES)
def test_fp32_program_agrees_with_torch(case: str, target: str) -> None:
    module, shape = CASES[case]
    torch.manual_seed(0)
    model, inputs = module().eval(), (torch.randn(shape),)
    (got,) = mil.load(convert(model, inputs, target, half=False)).predict(named(inputs)).values()
    np.testing.assert_allclose(got, model(*inputs).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ["mixed", "attention", "lstm"])
def test_precision_of_fp16_programs(case: str) -> None:
    """Without rounding a fp16 program is as good as its fp16 weights; with it, as fp16."""
    module, shape = CASES[case]
    torch.manual_seed(0)
    model, inputs = module().eval(), (torch.randn(shape),)
    want = model(*inputs).detach().numpy()
    converted = convert(model, inputs)
    (rounded,) = mil.load(converted).predict(named(inputs)).values()
    (exact,) = mil.load(converted, precision="fp32").predict(named(inputs)).values()
    scale = np.abs(want).max()
    assert 0 < np.abs(exact - want).max() < 2e-3 * scale
    assert 0 < np.abs(rounded - want).max() < 1e-2 * scale


def test_rounds_at_every_op() -> None:
    """1 + 2^-11 is 1 in fp16, so that nothing is left of it after the subtraction."""

    class Lost(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 2.0**-11) - x

    inputs = (torch.ones(3),)
    converted = convert(Lost(), inputs)
    (rounded,) = mil.load(converted).predict(named(inputs)).values()
    (exact,) = mil.load(converted, precision="fp32").predict(named(inputs)).values()
    assert rounded.tolist() == [0.0] * 3
    assert exact.tolist() == [2.0**-11] * 3


def test_fp16_overflow_is_reported_with_its_op() -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sqrt(x * x)

    inputs = (torch.tensor([1.0, 300.0]),)
    model = mil.load(convert(Square(), inputs))
    report = mil.Report()
    (got,) = model.predict(named(inputs), report=report).values()
    assert got.tolist() == [1.0, float("inf")]
    assert [(each.operation, each.count) for each in report.overflows] == [("mul", 1)]
    with pytest.warns(mil.Fp16OverflowWarning, match="mul"):
        model.predict(named(inputs))


def test_trace_names_every_value() -> None:
    torch.manual_seed(0)
    inputs = (torch.randn(2, 3, 16, 16),)
    model = mil.load(convert(Mixed(), inputs))
    trace = model.trace(named(inputs))
    made = [each.name for op in model.program.functions["main"].body.operations for each in op.outputs]
    assert set(trace) <= set(made)
    assert set(model.outputs) <= set(trace)
    assert list(trace) == sorted(trace, key=made.index)


def test_control_flow() -> None:
    @torch.jit.script
    def grow(x: torch.Tensor) -> torch.Tensor:
        while bool(x.sum() < 100):
            if bool(x.sum() > 10):  # noqa: SIM108  (TorchScript makes a branch of it)
                x = x * 3
            else:
                x = x + 1
        return x

    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return grow(x)

    inputs = (torch.tensor([1.0, 2.0]),)
    (got,) = mil.load(convert(Loop(), inputs, half=False)).predict(named(inputs)).values()
    assert got.tolist() == grow(*inputs).tolist()


def test_state_lives_between_predictions() -> None:
    import coremltools as ct

    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * 2

    converted = ct.convert(
        torch.jit.trace(Counter().eval(), (torch.zeros(2),)),
        inputs=[ct.TensorType(name="x0", shape=(2,))],
        states=[ct.StateType(wrapped_type=ct.TensorType(shape=(2,), dtype=np.float16), name="total")],
        minimum_deployment_target=ct.target.iOS18,
        skip_model_load=True,
    )
    model = mil.load(converted)
    state = model.make_state()
    for count in (1, 2, 3):
        (got,) = model.predict({"x0": np.array([1.0, 2.0])}, state=state).values()
        assert got.tolist() == [2.0 * count, 4.0 * count]
    (fresh,) = model.predict({"x0": np.array([1.0, 2.0])}).values()
    assert fresh.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("target", ["iOS16", "iOS18"])
@pytest.mark.parametrize("form", ["linear", "palettized", "pruned"])
def test_compressed_weights(form: str, target: str) -> None:
    """The converter's own decompression is the oracle."""
    import coremltools.optimize.coreml as cto

    torch.manual_seed(0)
    inputs = (torch.randn(1, 64),)
    converted = convert(nn.Sequential(nn.Linear(64, 64)), inputs, target, half=False)
    if form == "linear":
        config = cto.OpLinearQuantizerConfig(mode="linear", weight_threshold=0)
        small = cto.linear_quantize_weights(converted, cto.OptimizationConfig(global_config=config))
    elif form == "palettized":
        config = cto.OpPalettizerConfig(mode="uniform", nbits=4, weight_threshold=0)
        small = cto.palettize_weights(converted, cto.OptimizationConfig(global_config=config))
    else:
        config = cto.OpMagnitudePrunerConfig(target_sparsity=0.5, weight_threshold=0)
        small = cto.prune_weights(converted, cto.OptimizationConfig(global_config=config))
    loaded = mil.load(small)
    used = {each.type for each in loaded.program.functions["main"].body.operations}
    assert any(each.startswith("constexpr_") for each in used)
    (got,) = loaded.predict(named(inputs)).values()
    (want,) = mil.load(cto.decompress_weights(small)).predict(named(inputs)).values()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
