"""`convert_pt2e` of a graph that keeps a batch norm: `python -m benchmarks.convert_batch_norm [--rounds N]`.

One BatchNorm2d, prepared with a quantizer that annotates nothing; torchao tries its QAT fold on it. Both sides are
compared as graphs.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.sides import HEADER, in_turns, quiet, say


def prepared() -> Any:
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e
    from torchao.quantization.pt2e.quantizer import Quantizer

    class Nothing(Quantizer):
        def annotate(self, model: Any) -> Any:
            return model

        def validate(self, model: Any) -> None:
            pass

    inputs = (torch.ones(1, 3, 8, 8),)
    graph = torch.export.export(torch.nn.BatchNorm2d(3).eval(), inputs, strict=True).module()
    model = prepare_pt2e(graph, Nothing())
    model(*inputs)
    return model


def main() -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    import opsuite

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    code: dict[str, str] = {}

    def plain() -> None:
        code["plain"] = convert_pt2e(prepared()).code

    def accelerated() -> None:
        with opsuite.accelerate(["qat-fold"]):
            code["accelerated"] = convert_pt2e(prepared()).code

    accelerated()
    say(HEADER)
    ratio = in_turns("BatchNorm2d, capture to convert", plain, accelerated, options.rounds)
    say(ratio)
    assert code["plain"] == code["accelerated"], "the converted graphs differ"
    say(f"convert with a left-over batch norm {ratio.value:.0f}x faster, same graph")


if __name__ == "__main__":
    quiet()
    main()
