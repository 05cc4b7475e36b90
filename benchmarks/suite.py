"""The peer's own int8 operators suite under pytest: `python -m benchmarks.suite [--sample N] [--flow FLOW]`.

One side has the published fix (pattern graphs kept by their arguments, a deep copy for each use), the other
`-p opsuite.accelerate`. Both are processes of their own that run the same unchanged tests, with the run step made a
no-op, so that all sub-cases are lowered. CPU seconds of the tests alone, after a warm-up; outcomes are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.sides import HEADER, Ratio, say

TESTS = 467


def run_side(side: str, flow: str, every: int) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "rows.json"
        plugins = ["-p", "benchmarks.peer_plugin"] + (["-p", "opsuite.accelerate"] if side == "plugin" else [])
        suite = "executorch.backends.test.suite.operators"
        options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider"]
        environment = {
            "OMP_NUM_THREADS": "1",
            "OPSUITE_BENCHMARK_SIDE": side,
            "OPSUITE_BENCHMARK_FLOW": flow,
            "OPSUITE_BENCHMARK_EVERY": str(every),
            "OPSUITE_BENCHMARK_OUT": str(out),
        }
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *plugins, "--pyargs", suite, "-m", f"flow_{flow}"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode not in (0, 1) or not out.exists():
            raise SystemExit(f"{side}: pytest exited {ended.returncode}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return json.loads(out.read_text("utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=TESTS, help=f"how many of the {TESTS} tests (default: all)")
    parser.add_argument("--flow", default="coreml_static_int8")
    options = parser.parse_args()
    every = max(1, TESTS // options.sample)
    sides = {side: run_side(side, options.flow, every) for side in ("cache", "plugin")}
    cache, plugin = sides.values()
    outcomes = [{test: (row["outcome"], row["lowered"]) for test, row in side.items()} for side in (cache, plugin)]
    assert outcomes[0] == outcomes[1], "the outcomes differ"
    say(HEADER)
    seconds = [sum(row["seconds"] for row in side.values()) for side in (cache, plugin)]
    name = f"{len(cache)} tests, {sum(row['lowered'] for row in cache.values())} programs"
    ratio = Ratio(name, *seconds)
    say(ratio)
    say(f"the peer's suite, {options.flow}: {ratio.value:.2f}x faster with the plugin than with cache + deepcopy")


if __name__ == "__main__":
    main()
