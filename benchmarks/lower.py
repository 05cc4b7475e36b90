"""Lowering with and without `opsuite.accelerate()`: `python -m benchmarks.lower [CASE ...] [--rounds N]`.

Times are CPU seconds of everything from the exported program to the bytes of the .pte (export itself is not in them),
medians of rounds taken in turns. Programs of both sides are compared.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from benchmarks.sides import HEADER, Ratio, in_turns, quiet, say


def cases() -> dict[str, tuple[Any, tuple[Any, ...], str]]:
    import torch
    from torch import nn

    class Elementwise(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.sigmoid(x + y) * x

    torch.manual_seed(0)
    return {
        "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), (torch.randn(1, 3, 16, 16),), "iOS15"),
        "elementwise": (Elementwise(), (torch.randn(4, 5), torch.randn(4, 5)), "iOS15"),
        "lstm": (nn.LSTM(64, 32, batch_first=True), (torch.randn(2, 10, 64),), "iOS15"),
        "lstm-long": (nn.LSTM(64, 32, 2, batch_first=True), (torch.randn(2, 32, 64),), "iOS15"),
    }


DEFAULT = ("conv", "elementwise", "lstm")


def lower(exported: Any, target: str, check: bool) -> bytes:
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    specs = CoreMLBackend.generate_compile_specs(minimum_deployment_target=getattr(ct.target, target))
    edge = to_edge_transform_and_lower(
        exported,
        partitioner=[CoreMLPartitioner(compile_specs=specs)],
        compile_config=EdgeCompileConfig(_check_ir_validity=check),
    )
    return edge.to_executorch().buffer


def measure(name: str, rounds: int, check: bool) -> Ratio:
    import torch

    import opsuite
    from opsuite.accelerate import switch
    from opsuite.accelerate.compare import same_program

    module, inputs, target = cases()[name]
    exported = torch.export.export(module.eval(), inputs, strict=True)
    programs: dict[str, bytes] = {}

    def plain() -> None:
        programs["plain"] = lower(exported, target, check)

    def accelerated() -> None:
        programs["accelerated"] = lower(exported, target, check)

    # A user turns it on once, not for each lowering: it stays on, and is set aside for the other side.
    plain()
    with opsuite.accelerate():
        accelerated()
        ratio = in_turns(name, plain, accelerated, rounds, around_slow=switch.suspended)
    assert same_program(programs["plain"], programs["accelerated"]), f"{name}: the programs differ"
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=DEFAULT, help=f"of {', '.join(cases())}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-check", action="store_true", help="lower without verifiers, as ExecuTorch's suite does")
    options = parser.parse_args()
    say(HEADER)
    ratios = []
    for name in options.cases:
        ratios.append(measure(name, options.rounds, not options.no_check))
        say(ratios[-1])
    mean = math.prod(ratio.value for ratio in ratios) ** (1 / len(ratios))
    say(f"lowering {mean:.2f}x faster with opsuite.accelerate(), same programs (geometric mean of {len(ratios)} cases)")


if __name__ == "__main__":
    quiet()
    main()
