"""The check of the table against executorch: that it notices, on planted differences; and, slow, the check itself."""

import dataclasses

import pytest
import torch

from opsuite.quantizer.drift import Observed, check_patterns, compare_with_table, shape_of
from opsuite.quantizer.patterns import FAMILIES, PATTERNS, Rule, pattern_graph


@pytest.fixture(scope="module")
def table():
    """What would be observed of an executorch that does what the table says."""
    shapes = tuple(shape_of(pattern_graph(key)) for key in PATTERNS)
    return Observed(shapes, tuple(frozenset(f.sources) for f in FAMILIES if f.rule is Rule.SHARED))


def problems(observed):
    report = compare_with_table(observed)
    assert not report.holds
    assert str(report).splitlines()[1:] == [str(drift) for drift in report.drifts]
    assert report.to_json()["holds"] is False
    return [(drift.pattern, drift.problem) for drift in report.drifts]


def test_the_table_does_not_drift_from_itself(table):
    report = compare_with_table(table)
    assert report.holds
    assert str(report) == "351 exported graphs, 351 patterns in the table: equal, in the same order"
    # executorch exports some of them twice.
    assert compare_with_table(dataclasses.replace(table, shapes=(*table.shapes, table.shapes[5]))).holds


def test_a_missing_and_an_unknown_export_are_named(table):
    assert problems(dataclasses.replace(table, shapes=table.shapes[:-1])) == [
        ("matmul", "is in the table and not exported")
    ]
    graph = pattern_graph("matmul+relu")
    next(node for node in graph.graph.nodes if "relu" in str(node.target)).target = torch.ops.aten.sin.default
    ((place, problem),) = problems(dataclasses.replace(table, shapes=(*table.shapes, shape_of(graph))))
    assert place == "export 352"
    assert problem == "the table has no pattern of aten.matmul.default -> aten.sin.default"


def test_another_argument_is_named(table):
    graph = pattern_graph("conv1d+batch_norm")
    norm = next(node for node in graph.graph.nodes if "batch_norm" in str(node.target))
    norm.args = (*norm.args[:7], 1e-3, norm.args[8])
    place = list(map(str, PATTERNS)).index("conv1d+batch_norm")
    shapes = (*table.shapes[:place], shape_of(graph), *table.shapes[place + 1 :])
    ((pattern, problem),) = problems(dataclasses.replace(table, shapes=shapes))
    assert pattern == "conv1d+batch_norm"
    assert "0.001" in problem


def test_another_order_is_named_once(table):
    first, second, *others = table.shapes
    assert problems(dataclasses.replace(table, shapes=(second, first, *others))) == [
        ("place 1", "executorch tries conv1d+relu there, the table conv1d+relu_")
    ]


def test_other_sources_of_shared_qparams_are_named(table):
    first, *others = table.sources
    more = (first | {torch.amax}, *others)
    ((family, problem),) = problems(dataclasses.replace(table, sources=more))
    assert family == "max_pool1d"
    assert problem == (
        "executorch looks for MaxPool1d, amax, max_pool1d, max_pool1d, the table has MaxPool1d, max_pool1d, max_pool1d"
    )
    assert problems(dataclasses.replace(table, sources=tuple(others))) == [
        ("shared qparams", "executorch has 9 steps, the table 10")
    ]


def test_no_exports_are_no_proof():
    assert not compare_with_table(Observed((), ())).holds


@pytest.mark.slow
def test_the_table_is_what_the_installed_executorch_exports():
    report = check_patterns()
    assert report.exported == 405
    assert report.holds, str(report)
