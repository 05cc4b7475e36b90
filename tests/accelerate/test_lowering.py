import gc

import pytest
import torch
from models import build, lower, quantize

import opsuite
from opsuite.accelerate import PARTS
from opsuite.accelerate.compare import canonical, same_program


@pytest.fixture(scope="module")
def plain():
    return {}


def lowered_plain(plain, name):
    if name not in plain:
        plain[name] = lower(*build(name))
    return plain[name]


@pytest.mark.parametrize("name", ["conv", "elementwise", "lstm", "partly"])
def test_programs_are_the_same_with_and_without(plain, name):
    expected = lowered_plain(plain, name)
    with opsuite.accelerate():
        first, second = lower(*build(name)), lower(*build(name))
    assert same_program(first, expected)
    assert same_program(second, expected)
    assert same_program(lower(*build(name)), expected)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_alone_leaves_the_program_as_it_is(plain, part):
    expected = lowered_plain(plain, "partly")
    with opsuite.accelerate([part]) as on:
        assert on.applied or part == "coremltools-quantizer"
        assert same_program(lower(*build("partly")), expected)
        assert same_program(lower(*build("partly")), expected)


def test_a_quantized_program_is_the_same():
    module, inputs = build("conv")
    with opsuite.accelerate(["coreml-quantizer"]):
        converted = quantize(module, inputs)
    expected = lower(converted, inputs, "iOS17")
    with opsuite.accelerate():
        assert same_program(lower(converted, inputs, "iOS17"), expected)


def test_a_program_with_dynamic_shapes_is_the_same():
    module, inputs = build("elementwise")
    batch = torch.export.Dim("batch", min=2, max=8)
    shapes = ({0: batch}, {0: batch})
    expected = lower(module, inputs, dynamic_shapes=shapes)
    with opsuite.accelerate():
        assert same_program(lower(module, inputs, dynamic_shapes=shapes), expected)


def test_other_programs_are_not_the_same(plain):
    conv = lowered_plain(plain, "conv")
    module, inputs = build("conv")
    with torch.no_grad():
        module.conv.bias[0] += 1
    with opsuite.accelerate():
        changed = lower(module, inputs)
    assert len(changed) == len(conv)
    assert not same_program(changed, conv)
    assert b"uuid" in canonical(conv)


def test_nothing_collects_everything(monkeypatch):
    calls = []
    collect = gc.collect
    monkeypatch.setattr(gc, "collect", lambda *args: calls.append(args) or collect(*args))
    lower(*build("elementwise"))
    assert calls
    with opsuite.accelerate():
        calls.clear()
        lower(*build("elementwise"))
        assert not calls


def test_composite_ops_are_looked_up_once(monkeypatch):
    from torch._export import utils

    calls = []
    original = utils._materialize_cpp_cia_ops

    def materialize() -> None:
        calls.append(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))
        for op in torch.ops.aten:
            del op
        original()

    materialize.__wrapped__ = original
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", materialize)
    lower(*build("elementwise"))
    assert len(calls) > 2
    with opsuite.accelerate():
        lower(*build("elementwise"))
        calls.clear()
        lower(*build("elementwise"))
        assert not calls


def test_collector_state_is_restored():
    frozen, thresholds = gc.get_freeze_count(), gc.get_threshold()
    with opsuite.accelerate(["freeze-gc", "gc-thresholds"]):
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > thresholds[0]
    assert gc.get_freeze_count() == frozen
    assert gc.get_threshold() == thresholds
