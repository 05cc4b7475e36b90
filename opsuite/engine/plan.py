"""Planning: from the command line's words to the items of a run."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from opsuite.cases import find_suite, resolve
from opsuite.cases.suite import Suite
from opsuite.engine.select import compile_selection
from opsuite.environment import environment
from opsuite.exits import Exit, OpsuiteError
from opsuite.flows import FLOWS, Flow
from opsuite.results.store import Plan, PlanItem, Reconciliation

DEFAULT_SUITE, DEFAULT_FLOW = "operators", "coreml_static_int8"


def make_plan(
    suites: Sequence[str], flows: Sequence[str], selection: str = "", seed: int = 0, runtime: str = "auto"
) -> Plan:
    """The plan for suites (or cases, by ID) in flows, narrowed by a `-k` expression.

    Raises OpsuiteError for what is unknown or not available, and with exit code 4 where nothing is selected.
    """
    wanted = [resolve(argument) for argument in suites]
    chosen = [FLOWS.get(name).require() for name in dict.fromkeys(flows)]
    matches = compile_selection(selection)
    loaded = {selected.suite: find_suite(selected.suite) for selected in wanted}
    items: dict[tuple[str, str], PlanItem] = {}
    reconciliation: list[Reconciliation] = []
    for flow in chosen:
        for name, suite in loaded.items():
            listing = suite.listing(flow)
            asked = [s.case_id for s in wanted if s.suite == name and s.case_id is not None]
            whole = any(s.suite == name and s.case_id is None for s in wanted)
            ids = listing.case_ids if whole else known_cases(suite, asked, listing.case_ids)
            selected = [case_id for case_id in ids if matches(case_id)]
            for case_id in selected:
                item = PlanItem(id=case_id, suite=name, flow=flow.name)
                other = items.setdefault(item.key, item).suite
                if other != name:
                    raise OpsuiteError(f"case {case_id!r} is in {other} and in {name}: run them one after the other")
            if listing.sources is not None:
                reconciliation.append(
                    Reconciliation(
                        suite=name,
                        flow=flow.name,
                        tests=listing.sources,
                        cases=len(listing.case_ids),
                        selected=len(selected),
                    )
                )
    if not items:
        narrowed = f" with -k {selection!r}" if selection else ""
        raise OpsuiteError(f"no case selected from {', '.join(suites)}{narrowed}", Exit.NOTHING_SELECTED)
    return Plan(
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        seed=seed,
        runtime=runtime,
        selection=selection,
        environment=environment(),
        reconciliation=reconciliation,
        items=list(items.values()),
    )


def known_cases(suite: Suite, asked: Sequence[str], known: Sequence[str]) -> list[str]:
    """Returns `asked`. Raises OpsuiteError for a case that is not among the suite's known ones."""
    for case_id in asked:
        if case_id not in known:
            suite.case(case_id)
            raise OpsuiteError(f"unknown case {case_id!r}: opsuite list {suite.name} names the ones there are")
    return list(asked)


def planned_flows(plan: Plan) -> list[Flow]:
    """The flows of a plan, each available here. Raises OpsuiteError where one is not."""
    return [FLOWS.get(name).require() for name in dict.fromkeys(item.flow for item in plan.items)]
