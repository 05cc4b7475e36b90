import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from coremltools.optimize.torch.quantization import LinearQuantizerConfig, ModuleLinearQuantizerConfig
from torch import nn

from opsuite.flows.coreml import static_int8_config
from opsuite.quantizer import CoreMLQuantizer, Fix
from opsuite.quantizer.explain import CLAIMED, CONFIGURED_AS_FLOAT, NO_PATTERN
from opsuite.quantizer.matcher import Reason

IMAGE, INTEGERS = torch.randn(1, 2, 6, 6), torch.arange(4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.up, self.head = nn.ConvTranspose2d(4, 4, 2), nn.Linear(4, 4)

    def forward(self, x, i):
        y = F.max_pool2d(self.act(self.norm(self.conv(x))), 2)
        doubled = y + y
        y = self.head(self.up(y).mean((2, 3)))
        y = F.gelu(y) + y
        return doubled, F.linear(y, self.head.weight), i + i.flip(0), F.max_pool2d(x, 2)


@pytest.fixture(scope="module")
def explained():
    return CoreMLQuantizer(static_int8_config()).explain(Net(), (IMAGE, INTEGERS))


@pytest.mark.parametrize(
    ("node", "module", "verdict", "pattern", "reason", "detail", "fix"),
    [
        ("conv2d", "conv", "quantized", "conv2d+relu", "", "", ""),
        ("relu", "act", "quantized", "conv2d+relu", "", "", ""),
        ("max_pool2d", "", "quantized", "max_pool2d", "", "shares the qparams of relu", ""),
        ("add", "", "float", "add", "repeated operand", "reads max_pool2d more than once", "same_operand"),
        ("conv_transpose2d", "up", "float", "", "no pattern", "do not have this op", ""),
        ("linear", "head", "quantized", "linear", "", "", ""),
        ("gelu", "", "float", "linear+gelu", "several users", "linear is also used by add_1", ""),
        ("add_1", "", "quantized", "add", "", "", ""),
        ("linear_1", "", "float", "linear", "already annotated", "head_weight", "shared_weights"),
        ("add_2", "", "quantized", "add", "", "calibration will fail", "integer_tensors"),
        ("max_pool2d_1", "", "float", "max_pool2d", "input not quantized", "x has no quantized output to share", ""),
    ],
)
def test_every_op_has_a_verdict_with_its_reason(explained, node, module, verdict, pattern, reason, detail, fix):
    row = explained[node]
    assert (row.module, row.verdict, row.pattern, row.reason, row.fix) == (module, verdict, pattern, reason, fix)
    assert detail in row.detail
    assert bool(row.scope) == (verdict == "quantized" or reason in ("already annotated", "input not quantized"))


def test_rows_are_in_graph_order_and_complete(explained):
    assert [row.node for row in explained.rows][:4] == ["conv2d", "relu", "max_pool2d", "add"]
    assert {*explained.quantized, *explained.left_float} == set(explained.rows)


def test_it_prints_a_table(explained):
    lines = str(explained).splitlines()
    assert lines[0] == f"{len(explained.quantized)} of {len(explained.rows)} ops quantized"
    assert lines[1].split() == ["node", "module", "verdict", "pattern", "scope", "why"]
    assert len(lines) == 2 + len(explained.rows)
    (line,) = (line for line in lines if line.startswith("linear_1 "))
    assert line.endswith("already annotated: head_weight is annotated already (fix: shared_weights)")


def test_an_unknown_op_is_told_which_there_are(explained):
    with pytest.raises(KeyError, match="no op 'conv9'; ops are conv2d, relu"):
        explained["conv9"]


def test_the_fixes_change_the_verdicts():
    fixed = CoreMLQuantizer(static_int8_config(), fixes="all").explain(Net(), (IMAGE, INTEGERS))
    assert [fixed[node].verdict for node in ("add", "linear_1", "add_2")] == ["quantized", "quantized", "float"]
    assert (fixed["add_2"].reason, fixed["add_2"].detail) == ("dtype", "add_2 is int64")
    assert not any(row.fix for row in fixed.rows)


def test_the_configuration_that_applied_is_named():
    config = LinearQuantizerConfig(
        ModuleLinearQuantizerConfig(),
        module_name_configs={"0": ModuleLinearQuantizerConfig(weight_dtype="quint8")},
        module_type_configs={nn.Conv1d: None},
    )
    model = nn.Sequential(nn.Linear(4, 4), nn.Conv1d(2, 2, 1), nn.Linear(4, 4), nn.ReLU6())
    explained = CoreMLQuantizer(config).explain(model, (torch.randn(2, 4),))
    first, conv, last, _ = explained.rows
    assert (first.scope, first.reason, first.fix) == ("module name 0", "origin unknown", "module_configs")
    assert (conv.scope, conv.reason, conv.verdict) == ("module type Conv1d", "configured as float", "float")
    assert (last.scope, last.verdict, last.pattern) == ("global", "quantized", "linear+hardtanh")


def test_the_model_is_left_as_it_is(capture):
    model = Net().train()
    model.norm.eval()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    CoreMLQuantizer(static_int8_config()).explain(model, (IMAGE, INTEGERS))
    assert model.training and not model.norm.training
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    captured = capture(model, IMAGE, INTEGERS)
    code = captured.code
    CoreMLQuantizer(static_int8_config()).explain(captured)
    assert captured.code == code
    assert not any("quantization_annotation" in node.meta for node in captured.graph.nodes)


def test_training_keeps_the_batch_norm():
    explained = CoreMLQuantizer(static_int8_config()).explain(Net(), (IMAGE, INTEGERS), qat=True)
    assert explained["batch_norm"].pattern == explained["conv2d"].pattern == "conv2d+batch_norm+relu"


def test_a_module_needs_inputs():
    with pytest.raises(TypeError, match=r"captured model, or a module with its example inputs: got a Net without"):
        CoreMLQuantizer(static_int8_config()).explain(Net())


DOCS = Path(__file__).parents[2] / "docs"


def test_the_how_to_has_every_reason_and_no_other():
    text = (DOCS / "how-to" / "why-not-quantized.md").read_text("utf-8")
    own = {NO_PATTERN, CONFIGURED_AS_FLOAT, CLAIMED}
    documented = re.findall(r"^\| `([^`]+)` \|", text.partition("## What to do")[2], re.MULTILINE)
    assert sorted(documented) == sorted({*(reason.value for reason in Reason), *own})


def test_the_reference_has_every_fix_and_no_other():
    text = (DOCS / "reference" / "quantizer.md").read_text("utf-8")
    section = text.partition("## Fixes")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [fix.value for fix in Fix]
