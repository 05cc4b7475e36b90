"""Our outcomes of the peer's suite beside the peer's own, case by case, with the reason for each difference.

    pytest -c /dev/null --pyargs executorch.backends.test.suite.operators -m flow_xnnpack \
        --json-report --json-report-file=peer.json
    opsuite run executorch:operators --flow xnnpack -o ours
    python tests/conformance/peer_outcomes.py peer.json ours
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from opsuite.results.record import Record
from opsuite.results.store import load_plan, load_records

DETAILS = {
    "Quantization Failed": "fail:quantize",
    "Lowering Failed": "fail:lower",
    "PTE Load Failed": "fail:execute",
    "PTE Run Failed": "fail:execute",
    "Output Mismatch": "fail:compare",
    "Unknown Failure": "fail:serialize",
}
NOT_REACHED, SKIPPED_TEST = "not reached", "skip (test)"

REASONS: tuple[tuple[str, str, str], ...] = (
    # the peer's outcome, ours, why; patterns over whole outcomes, the first row that matches speaks
    (r"skip \(test\)", r"skip:case", "same: the test is marked as skipped"),
    (r"skip", r"skip:eager", "same: the model does not run in eager mode"),
    (r"pass", r"pass", "same"),
    (
        r"skip",
        r"fail:execute MissingKernelError",
        "the peer skips programs that hold an op from its list of ops without a portable kernel; the program cannot "
        "be executed, so it fails here, with the kernel named",
    ),
    (r"skip", r"fail:export .*", "the peer counts an export failure as a skip"),
    (
        r"skip",
        r"pass",
        "the peer skips every graph with a 5-d convolution, and every one with an op from its list, run or not",
    ),
    (r"skip", r"fail:(execute|compare) .*", "the peer skips it by its list; it runs here, and fails"),
    (
        r"pass undelegated",
        r"pass|fail:.*|unverified",
        "the peer does not execute a program of which nothing was delegated, and calls it passed; it is executed here",
    ),
    (r"not reached", r".*", "the peer ends a test at its first sub-case that fails or is skipped"),
)


@dataclass(frozen=True)
class Pair:
    """One case: the peer's outcome, ours, and the reason of the difference, None where there is no known one."""

    case_id: str
    peer: str
    ours: str
    reason: str | None


def peer_outcomes(report: dict, flow: str) -> dict[str, str]:
    """The peer's outcomes by our case IDs, from a pytest-json-report."""
    outcomes: dict[str, str] = {}
    for test in report["tests"]:
        node_id = re.sub(rf"\[{flow}(?:-(.*))?\]$", lambda m: f"[{m[1]}]" if m[1] else "", test["nodeid"])
        # pytest roots node IDs in whatever directory it was started with.
        node_id = "executorch:operators/" + node_id[re.search(r"test_\w+\.py::", node_id).start() :]
        rows = test.get("metadata", {}).get("subtests", [])
        for row in rows:
            outcomes[f"{node_id}#{int(row['Subtest']) + 1}"] = _peer_outcome(row)
        if not rows:
            outcomes[f"{node_id}#1"] = SKIPPED_TEST if test["outcome"] == "skipped" else test["outcome"]
    return outcomes


def _peer_outcome(row: dict) -> str:
    if row["Result"] == "Fail":
        return DETAILS[row["Result Detail"]]
    if row["Result"] == "Pass" and not row.get("Delegated Nodes") and "PTE Size (Kb)" in row:
        # Without a delegate the peer stops before it serializes.
        return "pass undelegated" if row["PTE Size (Kb)"] == "" else "pass"
    return row["Result"].lower()


def our_outcome(record: Record) -> str:
    """The outcome, with the error's type where it failed: some reasons depend on it."""
    if record.outcome.startswith("fail:") and record.error is not None:
        return f"{record.outcome} {record.error.type}"
    return record.outcome


def compare(peer: dict[str, str], records: list[Record]) -> list[Pair]:
    """Every case of ours, in order, beside the peer's."""
    return [
        Pair(record.id, their := peer.get(record.id, NOT_REACHED), our := our_outcome(record), reason(their, our))
        for record in records
    ]


def reason(peer: str, ours: str) -> str | None:
    """Why the outcomes are what they are; None where no row of the table says."""
    stage = ours.split(" ", maxsplit=1)[0]
    if stage.startswith("fail:") and peer == stage:
        return "same: both fail in that stage"
    for theirs, our, text in REASONS:
        if re.fullmatch(theirs, peer) and re.fullmatch(our, ours):
            return text
    return None


def main(report: str, run: str) -> int:
    plan, records = load_plan(Path(run)), load_records(Path(run) / "records.jsonl").records
    peer = peer_outcomes(json.loads(Path(report).read_text("utf-8")), plan.items[0].flow)
    pairs = compare(peer, records)
    counts = Counter((pair.peer, pair.ours, pair.reason or "UNEXPLAINED") for pair in pairs)
    for (theirs, ours, text), count in sorted(counts.items(), key=lambda entry: -entry[1]):
        print(f"{count:5d}  peer {theirs:<17} ours {ours:<34} {text}")
    missing = peer.keys() - {pair.case_id for pair in pairs}
    for case_id in sorted(missing):
        print(f"only the peer has {case_id}: {peer[case_id]}")
    for pair in pairs:
        if pair.reason is None:
            print(f"unexplained: {pair.case_id}: peer {pair.peer}, ours {pair.ours}")
    return 1 if missing or any(pair.reason is None for pair in pairs) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
