"""A pytest plugin for `benchmarks.suite`: one side of the peer's own suite, timed test by test.

Environment variables tell it what to do, OPSUITE_BENCHMARK_ and: SIDE (`cache` or `plugin`), FLOW, EVERY (take each
N-th test), OUT (a JSON file of outcomes and CPU seconds).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.published_fix import cache_patterns

SIDE, FLOW, EVERY, OUT = (os.environ.get(f"OPSUITE_BENCHMARK_{name}", "") for name in ("SIDE", "FLOW", "EVERY", "OUT"))

_rows: dict[str, dict[str, Any]] = {}
_counts: Counter[str] = Counter()


def _do_not_run() -> None:
    """Nothing executes Core ML programs off macOS: without this every test would end at its first sub-case."""
    from executorch.backends.test.harness import Tester

    def count(tester: Any, *args: Any, **kwargs: Any) -> Any:
        _counts["lowered"] += 1
        return tester

    Tester.run_method_and_compare_outputs = count


def pytest_configure(config: pytest.Config) -> None:
    if SIDE == "cache":
        cache_patterns()
    _do_not_run()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = items[:: int(EVERY or 1)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """What a process pays once (405 exports, and what the libraries build at the first lowering) is not in the sum."""
    import torch
    from executorch.backends.test.suite.flow import all_flows
    from executorch.backends.test.suite.runner import run_test

    model, inputs = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3), torch.nn.ReLU()), (torch.randn(1, 2, 5, 5),)
    run_test(model, inputs, all_flows()[FLOW], "warm-up", "warm-up", 0, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    begun, before = time.process_time(), _counts["lowered"]
    result = yield
    row = _rows.setdefault(item.nodeid, {})
    row.update(seconds=time.process_time() - begun, lowered=_counts["lowered"] - before)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _rows.setdefault(report.nodeid, {})["outcome"] = report.outcome


def pytest_sessionfinish() -> None:
    Path(OUT).write_text(json.dumps(_rows), "utf-8")
