"""Seconds of `CoreMLQuantizer.annotate` against the size of the graph, and the exponent that fits them.

python -m benchmarks.annotate
"""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

from benchmarks.sides import quiet, say

SIZES = (100, 300, 1_000, 3_000, 10_000)
REPEATS = 5


def residual_network(size: int) -> Any:
    """A graph of about `size` nodes: convolutions with batch norm and ReLU, each with a residual sum and a sigmoid."""
    import torch
    from torch.fx import Graph, GraphModule

    aten = torch.ops.aten
    root = torch.nn.Module()
    for name, shape in (("w", (4, 4, 1, 1)), ("b", (4,)), ("scale", (4,)), ("mean", (4,))):
        root.register_parameter(name, torch.nn.Parameter(torch.randn(shape)))
    graph = Graph()
    value = graph.placeholder("x")
    while len(graph.nodes) < size - 1:
        weight, bias, scale, mean = (graph.get_attr(name) for name in ("w", "b", "scale", "mean"))
        convolution = graph.call_function(aten.conv2d.default, (value, weight, bias))
        arguments = (convolution, scale, scale, mean, mean, False, 0.1, 1e-5, False)
        normalized = graph.call_function(aten.batch_norm.default, arguments)
        branch = graph.call_function(aten.relu.default, (normalized,))
        summed = graph.call_function(aten.add.Tensor, (branch, value))
        value = graph.call_function(aten.sigmoid.default, (summed,))
    graph.output((value,))
    return GraphModule(root, graph)


def main() -> None:
    import torch

    from opsuite.flows.coreml import static_int8_config
    from opsuite.quantizer import CoreMLQuantizer

    torch.set_num_threads(1)
    seconds = {}
    for size in SIZES:
        runs = []
        for _ in range(REPEATS):
            model = residual_network(size)
            start = time.perf_counter()
            CoreMLQuantizer(static_int8_config()).annotate(model)
            runs.append(time.perf_counter() - start)
        seconds[size] = statistics.median(runs)
        say(f"{size:6,} nodes  {seconds[size]:8.4f} s  {1e6 * seconds[size] / size:6.1f} us a node")
    per_node = (seconds[SIZES[-1]] / SIZES[-1]) / (seconds[SIZES[0]] / SIZES[0])
    say(
        f"annotate: exponent {exponent(seconds):.2f}, {SIZES[-1]:,} nodes in {seconds[SIZES[-1]]:.2f} s, "
        f"{per_node:.2f}x the cost a node at {SIZES[0]}"
    )


def exponent(seconds: dict[int, float]) -> float:
    """The slope of the least-squares line through the logarithms of sizes and seconds."""
    points = [(math.log(size), math.log(value)) for size, value in seconds.items()]
    x_mean = statistics.mean(x for x, _ in points)
    y_mean = statistics.mean(y for _, y in points)
    return sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)


if __name__ == "__main__":
    quiet()
    main()
