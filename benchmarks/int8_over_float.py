"""The int8 suite against the float suite on the same cases: `python -m benchmarks.int8_over_float [--sample N]`.

One `opsuite run` of the peer's operators in both Core ML flows; seconds of the stages up to the .pte, added up from its
records. Cases that a flow does not take to a .pte are left out of both sums.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.sides import say

FLOAT, INT8 = "coreml", "coreml_static_int8"
SUITE = "executorch:operators"


def main() -> None:
    from opsuite.cases import find_suite
    from opsuite.flows import FLOWS
    from opsuite.results.store import RECORDS, load_records
    from opsuite.results.summary import total_seconds

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="how many of the cases (default: all)")
    options = parser.parse_args()
    known = {flow: find_suite(SUITE).listing(FLOWS.get(flow)).case_ids for flow in (FLOAT, INT8)}
    both = [case_id for case_id in known[INT8] if case_id in set(known[FLOAT])]
    chosen = both[:: max(1, len(both) // options.sample)] if options.sample else both
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run"
        command = [sys.executable, "-m", "opsuite", "run", *chosen, "--flow", FLOAT, "--flow", INT8, "-o", str(path)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        records = load_records(path / RECORDS).records
    seconds = {
        flow: {r.id: total_seconds(r) for r in records if r.flow == flow and r.pte_bytes is not None}
        for flow in (FLOAT, INT8)
    }
    shared = seconds[FLOAT].keys() & seconds[INT8].keys()
    float_sum, int8_sum = (sum(seconds[flow][case_id] for case_id in shared) for flow in (FLOAT, INT8))
    say(f"{len(shared)} cases: {FLOAT} {float_sum:.1f} s, {INT8} {int8_sum:.1f} s")
    say(f"the int8 suite takes {int8_sum / float_sum:.2f}x the time of the float suite")


if __name__ == "__main__":
    main()
