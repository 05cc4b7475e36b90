import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import opsuite


class Add(torch.nn.Module):
    def forward(self, x, y):
        return torch.add(x, y), torch.add(x, y), torch.add(x, y, alpha=2)


@pytest.fixture
def graph():
    return torch.export.export(Add(), (torch.ones(2, 3), torch.ones(3))).graph_module


@pytest.fixture
def on():
    with opsuite.accelerate(["replayed-ops"]) as acceleration:
        assert acceleration.applied
        yield acceleration


def replay(graph, *inputs):
    return torch.fx.Interpreter(graph).run(*inputs)


def test_a_second_replay_gets_the_same_tensors_node_by_node(graph, on):
    with FakeTensorMode() as mode:
        inputs = mode.from_tensor(torch.ones(2, 3)), mode.from_tensor(torch.ones(3))
        first, second = replay(graph, *inputs), replay(graph, *inputs)
    assert [a is b for a, b in zip(first, second, strict=True)] == [True, True, True]
    # Two nodes that call the same have a tensor each, as without.
    assert len({id(tensor) for tensor in first}) == 3


def test_without_the_part_every_replay_makes_new_tensors(graph):
    with FakeTensorMode() as mode:
        inputs = mode.from_tensor(torch.ones(2, 3)), mode.from_tensor(torch.ones(3))
        first, second = replay(graph, *inputs), replay(graph, *inputs)
    assert not any(a is b for a, b in zip(first, second, strict=True))


def test_other_tensors_of_the_same_shape_get_results_of_their_own(graph, on):
    with FakeTensorMode() as mode:
        x, y = mode.from_tensor(torch.ones(2, 3)), mode.from_tensor(torch.ones(3))
        first = replay(graph, x, y)
        second = replay(graph, mode.from_tensor(torch.ones(4, 3)), y)
    assert [tuple(tensor.shape) for tensor in first] == [(2, 3)] * 3
    assert [tuple(tensor.shape) for tensor in second] == [(4, 3)] * 3


def test_results_that_died_are_made_again(graph, on):
    with FakeTensorMode() as mode:
        inputs = mode.from_tensor(torch.ones(2, 3)), mode.from_tensor(torch.ones(3))
        replay(graph, *inputs)
        again = replay(graph, *inputs)
    assert all(tuple(tensor.shape) == (2, 3) for tensor in again)


def test_real_tensors_are_computed(graph, on):
    first = replay(graph, torch.ones(2, 3), torch.ones(3))
    second = replay(graph, torch.ones(2, 3) * 2, torch.ones(3))
    assert first[0][0, 0] == 2
    assert second[0][0, 0] == 3


def test_symbolic_shapes_are_not_remembered(on):
    batch = torch.export.Dim("batch")
    inputs = torch.ones(5, 3), torch.ones(3)
    graph = torch.export.export(Add(), inputs, dynamic_shapes=({0: batch}, None)).graph_module
    x, y = (node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder")
    assert x._has_symbolic_sizes_strides
    with x.fake_mode:
        first, second = replay(graph, x, y), replay(graph, x, y)
    assert not any(a is b for a, b in zip(first, second, strict=True))


def test_another_mode_on_top_sees_every_call(graph, on):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen, kept = [], []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with FakeTensorMode() as mode:
        inputs = mode.from_tensor(torch.ones(2, 3)), mode.from_tensor(torch.ones(3))
        for _ in range(2):
            with Watch():
                kept.append(replay(graph, *inputs))
    assert len([func for func in seen if func is torch.ops.aten.add.Tensor]) == 6
