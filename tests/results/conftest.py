from __future__ import annotations

import pytest

from opsuite.environment import environment
from opsuite.results.record import Record
from opsuite.results.store import Plan, PlanItem


@pytest.fixture(scope="session")
def plan() -> Plan:
    items = [PlanItem(id=f"case/{number}", suite="suite", flow="portable") for number in range(5)]
    return Plan(created="2026-01-01T00:00:00+00:00", seed=0, runtime="auto", environment=environment(), items=items)


@pytest.fixture(scope="session")
def records(plan: Plan) -> list[Record]:
    return [
        Record(id=item.id, suite=item.suite, flow=item.flow, outcome="pass", seed=plan.seed, environment="0" * 12)
        for item in plan.items
    ]
