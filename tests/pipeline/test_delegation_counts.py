import copy
from collections import Counter

import pytest
import torch

from opsuite.cases import Case, find_suite, function_module
from opsuite.flows import FLOWS
from opsuite.pipeline.delegation import Delegation


def partly(x):
    # Neither XNNPACK nor Core ML takes the sort.
    return torch.sort(torch.sigmoid(x + 1) * x)[0].abs()


CASES = {
    "partly": Case("partly", lambda: (function_module(partly), (torch.randn(4, 6),))),
    **{name: find_suite("operators").case("operators/" + name) for name in ("conv2d/batch_norm_relu", "sub/alpha@3")},
}


def peers_counts(built, flow_name):
    """Delegated and undelegated operators as the peer's runner counts them, from an ETRecord."""
    from executorch.backends.test.harness.stages import StageType
    from executorch.backends.test.suite.flow import all_flows
    from executorch.backends.test.suite.reporting import count_ops

    flow = all_flows()[flow_name]
    tester = flow.tester_factory(copy.deepcopy(built.module), built.inputs)
    if flow.quantize:
        tester.quantize(flow.quantize_stage_factory() if flow.quantize_stage_factory else None)
    tester.export(tester._get_default_stage(StageType.EXPORT, dynamic_shapes=None))
    tester.to_edge_transform_and_lower(generate_etrecord=True)
    manager = tester.get_artifact()
    before = count_ops({"forward": manager._etrecord.edge_dialect_program})
    undelegated = count_ops(manager._edge_programs)
    return before - undelegated, undelegated


@pytest.mark.parametrize(
    ("name", "flow"),
    [
        ("conv2d/batch_norm_relu", "xnnpack"),
        ("conv2d/batch_norm_relu", "xnnpack_static_int8_per_channel"),
        ("conv2d/batch_norm_relu", "coreml"),
        ("partly", "xnnpack"),
        ("partly", "coreml"),
        ("partly", "portable"),
        ("sub/alpha@3", "coreml"),
    ],
)
def test_counts_are_the_peers(taken, name, flow):
    delegated, undelegated = peers_counts(CASES[name].instantiate(0, FLOWS.get(flow)), flow)
    record = taken(CASES[name], flow=flow, runtime="none")
    assert record.outcome == "unverified"
    counts = record.delegation
    assert (counts.delegated_ops, counts.undelegated_ops) == (delegated, undelegated)
    assert (counts.delegated_nodes, counts.undelegated_nodes) == (delegated.total(), undelegated.total())
    extent = ("partial" if undelegated else "full") if delegated else "none"
    assert record.delegated == extent
    assert counts.delegated_node_percent == pytest.approx(
        100 * delegated.total() / (delegated.total() + undelegated.total())
    )


def test_percentages_count_nodes_and_distinct_operators():
    found = Delegation.from_counts(Counter(a=3, b=1), Counter(a=1, c=2))
    assert (found.delegated, found.undelegated) == (Counter(a=2, b=1), Counter(a=1, c=2))
    assert found.extent == "partial"
    assert found.node_percent == pytest.approx(50.0)
    assert found.op_percent == pytest.approx(200 / 3)


def test_where_there_is_nothing_to_delegate_there_is_no_percentage():
    nothing = Delegation.from_counts(Counter(), Counter())
    assert (nothing.extent, nothing.node_percent, nothing.op_percent) == ("none", None, None)
