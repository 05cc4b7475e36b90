"""A pytest plugin for the peer's own suite: what its own runner is asked to lower, as JSON, with nothing lowered."""

import json
import os
from pathlib import Path

import pytest
from executorch.backends.test.suite import runner
from executorch.backends.test.suite.reporting import TestCaseSummary, TestResult

tests = {}


def describe(model, inputs):
    """What tells one call from another, as JSON holds it."""
    # Quantizable and plain layers of one name are told apart by their modules.
    layers = sorted({f"{type(layer).__module__}.{type(layer).__name__}" for layer in model.modules()})
    shapes = json.dumps(inputs, default=lambda tensor: [list(tensor.shape), str(tensor.dtype)])
    return {"layers": layers, "inputs": json.loads(shapes)}


def run_test(model, inputs, flow, test_name, test_base_name, subtest_index, params, **options):
    node_id = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    call = {
        **describe(model, inputs),
        "fresh": options["generate_random_test_inputs"],
        "dynamic": options["dynamic_shapes"] is not None,
    }
    tests[node_id].append(call)
    assert len(tests[node_id]) == subtest_index + 1
    return TestCaseSummary(
        backend=flow.backend,
        base_name=test_base_name,
        flow=flow.name,
        name=test_name,
        params=params,
        result=TestResult.SUCCESS,
        error=None,
        tensor_error_statistics=[],
        subtest_index=subtest_index,
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests():
    # The peer's conftest takes the name from there when it is imported.
    runner.run_test = run_test


def pytest_collection_finish(session):
    tests.update({item.nodeid: [] for item in session.items})


def pytest_sessionfinish(session):
    Path(os.environ["PEER_CALLS"]).write_text(json.dumps(tests))
