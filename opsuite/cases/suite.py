"""Suites: named collections of cases, and how arguments of the command line select from them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from opsuite.cases.case import Case, check_case_id
from opsuite.exits import Exit, OpsuiteError
from opsuite.registry import Registry, unknown

if TYPE_CHECKING:
    from opsuite.flows.flow import Flow


@dataclass(frozen=True)
class Listing:
    """The cases of a suite in one flow, and how they reconcile with where they come from.

    Attributes:
        case_ids: in the suite's order.
        sources: number of tests of another project that the cases were taken from; None for our own cases.
    """

    case_ids: Sequence[str]
    sources: int | None = None


class Suite(Protocol):
    """Where cases come from."""

    name: str

    def listing(self, flow: Flow) -> Listing:
        """The suite's case IDs in `flow`. Raises OpsuiteError where the suite is not available."""
        ...

    def case(self, case_id: str) -> Case:
        """The case with that ID. Raises OpsuiteError where there is none."""
        ...


@dataclass
class CaseSuite:
    """A suite of cases that are all known."""

    name: str
    cases: dict[str, Case] = field(default_factory=dict)

    def add(self, case: Case) -> Case:
        if check_case_id(case.id) in self.cases:
            raise ValueError(f"case {case.id!r} is registered twice")
        self.cases[case.id] = case
        return case

    def listing(self, flow: Flow) -> Listing:
        return Listing(tuple(self.cases))

    def case(self, case_id: str) -> Case:
        if case_id not in self.cases:
            raise OpsuiteError(unknown("case", case_id, self.cases))
        return self.cases[case_id]


def load_file_suite(path: Path) -> CaseSuite:
    """The cases of a user's Python file: its `CASES`, or one case from its `build`.

    The suite is named after the path as it was given; IDs of a `build` are the file's stem.
    Raises OpsuiteError where the file is missing, fails to import, or defines no case.
    """
    if not path.is_file():
        raise OpsuiteError(f"no such case file: {path}")
    spec = importlib.util.spec_from_file_location(f"opsuite_user_cases_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise OpsuiteError(f"not a Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise OpsuiteError(f"case file {path} fails to import: {type(error).__name__}: {error}") from error
    cases: Iterable[Case]
    if hasattr(module, "CASES"):
        cases = module.CASES
        if not isinstance(cases, Iterable):
            raise OpsuiteError(f"case file {path}: CASES is a {type(cases).__name__}, not a list of cases")
    elif hasattr(module, "build"):
        cases = [Case(path.stem, module.build)]
    else:
        raise OpsuiteError(f"case file {path} defines neither CASES nor build()")
    suite = CaseSuite(str(path))
    for case in cases:
        if not isinstance(case, Case):
            raise OpsuiteError(f"case file {path}: CASES holds a {type(case).__name__}, not a Case")
        try:
            suite.add(case)
        except ValueError as error:
            raise OpsuiteError(f"case file {path}: {error}") from error
    return suite


SUITES: Registry[Suite] = Registry("suite")


def find_suite(name: str) -> Suite:
    """The suite of that name, or of that Python file. Raises OpsuiteError where there is none."""
    if name.endswith(".py"):
        return load_file_suite(Path(name))
    return SUITES.get(name)


@dataclass(frozen=True)
class Selected:
    """One argument of the command line, resolved: a suite, and the one case asked for, if any."""

    suite: str
    case_id: str | None = None


def resolve(argument: str) -> Selected:
    """A suite's name, a Python file, or a case's ID. Raises OpsuiteError for anything else."""
    if argument in SUITES or argument.endswith(".py"):
        return Selected(argument)
    for suite in sorted(SUITES.names(), key=len, reverse=True):
        if argument.startswith(suite + "/"):
            return Selected(suite, argument)
    file_name, separator, case_id = argument.partition(".py::")
    if separator:
        return Selected(file_name + ".py", case_id)
    raise OpsuiteError(unknown("suite", argument, SUITES.names()), Exit.USAGE)
