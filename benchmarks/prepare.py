"""Cold and warm `prepare_pt2e` of Conv2d+ReLU: opsuite against executorch, and against executorch with cached patterns.

    python -m benchmarks.prepare

Each side runs in processes of its own; imports and the capture come before the clock starts. The cached side keeps each
of the exported pattern graphs by its arguments and hands out deep copies.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.published_fix import cache_patterns

SIDES = {"opsuite": 3, "executorch": 1, "cache+deepcopy": 1}
"""Sides, and in how many fresh processes each is measured."""

WARM_CALLS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    side = parser.parse_args().side
    if side:
        print(json.dumps(measure(side)))
        return
    cold: dict[str, float] = {}
    warm: dict[str, float] = {}
    for name, processes in SIDES.items():
        runs = [_in_fresh_process(name) for _ in range(processes)]
        cold[name] = statistics.median(run["cold"] for run in runs)
        warm[name] = statistics.median(second for run in runs for second in run["warm"])
        print(f"{name:15} cold {cold[name]:8.4f} s   warm {warm[name]:8.4f} s", flush=True)
    print(
        f"prepare_pt2e of Conv2d+ReLU: cold {cold['executorch'] / cold['opsuite']:,.0f}x faster than executorch, "
        f"warm {warm['cache+deepcopy'] / warm['opsuite']:,.0f}x faster than cache+deepcopy"
    )


def _in_fresh_process(side: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.prepare", "--side", side]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(side: str) -> dict[str, Any]:
    """Seconds of the first `prepare_pt2e` of this process, and of later ones."""
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    from opsuite.flows.coreml import static_int8_config

    torch.set_num_threads(1)
    if side == "opsuite":
        from opsuite.quantizer import CoreMLQuantizer
    else:
        from executorch.backends.apple.coreml.quantizer import CoreMLQuantizer

        if side == "cache+deepcopy":
            cache_patterns()
    config = static_int8_config()
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    seconds = []
    # A plain executorch's warm call is its cold one over again.
    for _ in range(1 if side == "executorch" else 1 + WARM_CALLS):
        captured = torch.export.export(model, (torch.randn(1, 3, 16, 16),), strict=True).module()
        start = time.perf_counter()
        prepare_pt2e(captured, CoreMLQuantizer(config))
        seconds.append(time.perf_counter() - start)
    return {"cold": seconds[0], "warm": seconds[1:] or seconds}


if __name__ == "__main__":
    main()
