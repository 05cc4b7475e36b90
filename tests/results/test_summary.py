import pytest

from opsuite.exits import Exit
from opsuite.results.record import DelegationCounts, ErrorInfo
from opsuite.results.summary import summarize, total_seconds


def with_outcomes(records, *outcomes):
    return [record.model_copy(update={"outcome": outcome}) for record, outcome in zip(records, outcomes, strict=False)]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["pass", "pass", "pass", "skip:case", "unverified"], Exit.OK),
        (["pass", "fail:lower", "pass", "pass", "pass"], Exit.FAILURES),
        (["crash", "pass", "pass", "pass", "pass"], Exit.FAILURES),
        (["timeout", "pass", "pass", "pass", "pass"], Exit.FAILURES),
        (["pass", "pass", "pass", "pass"], Exit.INCOMPLETE),
        (["fail:lower", "pass", "pass", "pass"], Exit.INCOMPLETE),
        ([], Exit.INCOMPLETE),
    ],
)
def test_incomplete_comes_before_failed_and_failed_before_fine(plan, records, outcomes, code):
    assert summarize(plan.items, with_outcomes(records, *outcomes)).exit_code is code


def test_unverified_and_not_run_are_counted_apart_from_passes(plan, records):
    summary = summarize(plan.items, with_outcomes(records, "pass", "unverified", "skip:eager"))
    assert summary.outcomes == {"pass": 1, "unverified": 1, "skip:eager": 1, "not_run": 2}


def test_records_outside_the_plan_do_not_count(plan, records):
    stranger = records[0].model_copy(update={"id": "stranger", "outcome": "fail:lower"})
    assert summarize(plan.items, [*records, stranger]).outcomes == {"pass": len(records)}


def test_delegation_percentages_are_of_nodes_and_of_distinct_operators(plan, records):
    counts = DelegationCounts(
        delegated_nodes=3, undelegated_nodes=1, delegated_ops={"a": 3}, undelegated_ops={"a": 1, "b": 0}
    )
    other = DelegationCounts(delegated_nodes=0, undelegated_nodes=1, delegated_ops={}, undelegated_ops={"c": 1})
    totals = summarize(
        plan.items,
        [records[0].model_copy(update={"delegation": counts}), records[1].model_copy(update={"delegation": other})],
    ).delegation
    assert (totals.delegated_nodes, totals.undelegated_nodes) == (3, 2)
    assert totals.node_percent == pytest.approx(60.0)
    assert totals.op_percent == pytest.approx(100 / 3)


def test_percentages_of_nothing_are_none(plan):
    totals = summarize(plan.items, []).delegation
    assert (totals.node_percent, totals.op_percent) == (None, None)


def test_failures_that_differ_in_figures_alone_are_one_group(plan, records):
    failed = [
        record.model_copy(
            update={
                "outcome": "fail:compare",
                "error": ErrorInfo(type="OutputMismatchError", message=f"\nmax abs 0.{number}71\nsecond line"),
            }
        )
        for number, record in enumerate(records[:3])
    ]
    failed.append(
        records[3].model_copy(update={"outcome": "fail:lower", "error": ErrorInfo(type="KeyError", message="uint8")})
    )
    groups = summarize(plan.items, failed).failures
    assert [(group.outcome, len(group.ids)) for group in groups] == [("fail:compare", 3), ("fail:lower", 1)]
    assert groups[0].message == "OutputMismatchError: max abs 0.071"


def test_seconds_of_sub_stages_are_part_of_their_stage(records):
    record = records[0].model_copy(update={"seconds": {"quantize": 3.0, "quantize.prepare": 2.0, "lower": 1.0}})
    assert total_seconds(record) == 4.0


def test_the_slowest_come_first(plan, records):
    timed = [record.model_copy(update={"seconds": {"lower": float(number)}}) for number, record in enumerate(records)]
    assert [record.id for record in summarize(plan.items, timed, slowest=2).slowest] == ["case/4", "case/3"]
