"""Our outcomes of the peer's suite beside the peer's own, case by case, with the reason for each difference.

    pytest -c /dev/null --pyargs executorch.backends.test.suite.operators -m flow_xnnpack \
        --json-report --json-report-file=peer.json
    opsuite run executorch:operators --flow xnnpack -o ours
    python tests/conformance/peer_outcomes.py peer.json ours
"""

from __future__ import annotations

import argparse
import json
import re
import sys
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
        r"skip",
        r"fail:serialize .*",
        "the peer skips it by its list; the outputs are a named tuple, which executorch cannot write into a program",
    ),
    (
        r"pass",
        r"fail:compare .*",
        "the peer accepts 0.1 + 4 % of the value; here the limit is 1e-4 + 0.1 %, and the message holds the figure",
    ),
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


def print_counts(pairs: list[Pair]) -> None:
    """How many cases have which pair of outcomes, the most frequent first, and the cases without a reason."""
    for (theirs, ours, text), ids in grouped(pairs):
        print(f"{len(ids):5d}  peer {theirs:<17} ours {ours:<34} {text}")
    for pair in pairs:
        if pair.reason is None:
            print(f"unexplained: {pair.case_id}: peer {pair.peer}, ours {pair.ours}")


def print_markdown(pairs: list[Pair]) -> None:
    """The same as a table, with the cases of each row that is a difference folded below it."""
    groups = grouped(pairs)
    print("| cases | the peer | opsuite | why |\n|---:|---|---|---|")
    for (theirs, ours, text), ids in groups:
        print(f"| {len(ids)} | {theirs} | {ours} | {text} |")
    for (theirs, ours, text), ids in groups:
        if not text.startswith("same"):
            tests: dict[str, list[str]] = {}
            for case_id in ids:
                test, _, call = case_id.partition("::")[2].rpartition("#")
                tests.setdefault(test, []).append(call)
            names = ", ".join(f"`{test}` #{' #'.join(calls)}" for test, calls in tests.items())
            print(f"\n<details><summary>the peer: {theirs}; opsuite: {ours}</summary>\n\n{names}\n\n</details>")


def grouped(pairs: list[Pair]) -> list[tuple[tuple[str, str, str], list[str]]]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for pair in pairs:
        groups.setdefault((pair.peer, pair.ours, pair.reason or "UNEXPLAINED"), []).append(pair.case_id)
    return sorted(groups.items(), key=lambda entry: -len(entry[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="the peer's pytest-json-report")
    parser.add_argument("run", type=Path, help="our run directory, of the same flow")
    parser.add_argument("--markdown", action="store_true")
    asked = parser.parse_args()
    plan, records = load_plan(asked.run), load_records(asked.run / "records.jsonl").records
    peer = peer_outcomes(json.loads(asked.report.read_text("utf-8")), plan.items[0].flow)
    pairs = compare(peer, records)
    (print_markdown if asked.markdown else print_counts)(pairs)
    missing = peer.keys() - {pair.case_id for pair in pairs}
    for case_id in sorted(missing):
        print(f"only the peer has {case_id}: {peer[case_id]}")
    return 1 if missing or any(pair.reason is None for pair in pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
