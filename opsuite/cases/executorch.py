"""The peer's suites as cases: taken, unchanged, out of the installed executorch wheel's own test modules.

pytest collects the modules, with a `test_runner` of ours that records what a test asks to be lowered. A test may
call `lower_and_run_model` several times; each call is a case of its own, `#k` for the k-th call (from 1), so a
failure of the first does not hide the others.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsuite.cases.case import Built, Case, CaseSkipped
from opsuite.cases.suite import Listing
from opsuite.exits import Exit, OpsuiteError
from opsuite.output import quiet
from opsuite.registry import unknown
from opsuite.seeds import case_seed, seed_everything

if TYPE_CHECKING:
    from opsuite.flows.flow import Flow

PREFIX = "executorch:"


@dataclass(frozen=True)
class PeerTest:
    """One collected test of the peer.

    Attributes:
        node_id: pytest's, relative to the peer's suite package, with its parameters in brackets.
        run: calls the test function with a `test_runner`.
        skip: why pytest would not run it, or why it could not be collected.
    """

    node_id: str
    run: Callable[[Any], Any]
    skip: str | None = None


class _Captured(BaseException):
    """Ends a test once the wanted call has been recorded; not an Exception, so that no test can catch it."""

    def __init__(self, built: Built) -> None:
        self.built = built


class RecordingRunner:
    """Stands in for the peer's `test_runner` fixture: records, and lowers nothing.

    Args:
        flow: what tests read as `test_runner._flow`; some build another model when `flow.quantize` is true.
        wanted: the call to capture, from 1; None only counts the calls.
    """

    def __init__(self, flow: Flow, wanted: int | None = None) -> None:
        self._flow = flow
        self._wanted = wanted
        self.calls = 0

    def lower_and_run_model(
        self, model: Any, inputs: Any, generate_random_test_inputs: bool = True, dynamic_shapes: Any = None
    ) -> None:
        self.calls += 1
        if self.calls == self._wanted:
            raise _Captured(Built(model, tuple(inputs), dynamic_shapes, fresh_inputs=generate_random_test_inputs))


@dataclass
class _Collector:
    """A pytest plugin that keeps what was collected and runs nothing."""

    tests: list[PeerTest] = field(default_factory=list)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            reason = f"cannot be collected: {str(report.longrepr).strip().splitlines()[-1]}"
            self.tests.append(PeerTest(report.nodeid, lambda runner: None, skip=reason))

    def pytest_collection_finish(self, session: Any) -> None:
        from _pytest.skipping import evaluate_skip_marks

        for item in session.items:
            parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
            others = set(item.fixturenames) - set(parameters) - {"test_runner"}
            skipped = evaluate_skip_marks(item)
            skip = skipped.reason if skipped else f"needs the fixtures {sorted(others)}" if others else None
            self.tests.append(PeerTest(item.nodeid, functools.partial(_call, item.obj, parameters), skip))


def _call(function: Callable[..., Any], parameters: dict[str, Any], runner: RecordingRunner) -> None:
    function(test_runner=runner, **parameters)


def suite_directory() -> Path:
    """The directory of the peer's suite package. Raises OpsuiteError where the wheel does not ship it."""
    spec = importlib.util.find_spec("executorch")
    for location in (spec.submodule_search_locations or []) if spec else []:
        directory = Path(location) / "backends" / "test" / "suite"
        if directory.is_dir():
            return directory
    raise OpsuiteError(
        "the installed executorch has no backends/test/suite; install executorch 1.5.1 or newer", Exit.ENVIRONMENT
    )


def collect(part: str) -> list[PeerTest]:
    """All tests of `operators` or `models`, in pytest's order.

    Modules that draw tensors when they are imported draw them from a fixed seed.
    """
    with quiet():
        # What the peer's package imports warns of optional libraries that it lacks.
        import executorch.backends.test.suite  # noqa: F401
        import pytest

    directory = suite_directory()
    collector = _Collector()
    seed_everything(case_seed(part, 0))
    arguments = ["-p", "no:terminal", "-p", "no:cacheprovider", "--collect-only", "--noconftest", "--assert=plain"]
    arguments += ["-c", os.devnull, f"--rootdir={directory}", "--import-mode=importlib", str(directory / part)]
    with quiet():
        code = pytest.main(arguments, plugins=[collector])
        if not collector.tests:
            raise OpsuiteError(f"pytest collected nothing from {directory / part} (exit {code})", Exit.INTERNAL)
    return collector.tests


class ExecutorchSuite:
    """`executorch:operators` and `executorch:models`.

    Args:
        part: the sub-package of the peer's suite.
        needs_one_of: modules of which at least one must be installed for any test to be collected; test modules
            that lack theirs stay listed, skipped with the reason.
    """

    def __init__(self, part: str, needs_one_of: tuple[str, ...] = ()) -> None:
        self.name = PREFIX + part
        self._part = part
        self._needs_one_of = needs_one_of
        self._listings: dict[bool, Listing] = {}

    @functools.cached_property
    def tests(self) -> dict[str, PeerTest]:
        """The peer's tests by node ID. Raises OpsuiteError where what all of them need is missing."""
        if self._needs_one_of and not any(importlib.util.find_spec(name) for name in self._needs_one_of):
            raise OpsuiteError(
                f"suite {self.name} needs {' or '.join(self._needs_one_of)}: pip install 'opsuite[models]'",
                Exit.ENVIRONMENT,
            )
        return {test.node_id: test for test in collect(self._part)}

    def listing(self, flow: Flow) -> Listing:
        """One ID per recorded call; a test without one has a single ID, its own, and a reason to be skipped."""
        if flow.quantize not in self._listings:
            ids = tuple(case_id for test in self.tests.values() for case_id in self._case_ids(test, flow))
            self._listings[flow.quantize] = Listing(ids, sources=len(self.tests))
        return self._listings[flow.quantize]

    def _case_ids(self, test: PeerTest, flow: Flow) -> Iterator[str]:
        runner = RecordingRunner(flow)
        ended = True
        if test.skip is None:
            seed_everything(case_seed(test.node_id, 0))
            try:
                with warnings.catch_warnings():
                    # They are shown, in the case's log, when the case is built to be run.
                    warnings.simplefilter("ignore")
                    test.run(runner)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                # The reason is given by the case itself when it is built.
                ended = False
        for call in range(1, runner.calls + (1 if ended else 2)):
            if runner.calls or not ended:
                yield f"{PREFIX}{test.node_id}#{call}"
        if ended and not runner.calls:
            yield PREFIX + test.node_id

    def case(self, case_id: str) -> Case:
        node_id, _, call = case_id.removeprefix(PREFIX).rpartition("#")
        if not node_id:
            node_id, call = call, "0"
        test = self.tests.get(node_id)
        if test is None or not call.isdecimal():
            known = (PREFIX + name + "#1" for name in self.tests)
            raise OpsuiteError(unknown("case", case_id, known))
        return Case(case_id, functools.partial(_build, test, int(call)), flow_dependent=True)


def _build(test: PeerTest, wanted: int, flow: Flow) -> Built:
    """Runs the test up to the wanted call. Raises CaseSkipped with pytest's, unittest's or our reason."""
    import unittest

    import pytest

    if test.skip is not None:
        raise CaseSkipped(test.skip)
    runner = RecordingRunner(flow, wanted)
    try:
        test.run(runner)
    except _Captured as captured:
        return captured.built
    except (unittest.SkipTest, pytest.skip.Exception) as reason:
        raise CaseSkipped(str(reason)) from None
    raise CaseSkipped(f"the test calls lower_and_run_model {runner.calls} times")
