import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsuite.pipeline.accuracy import Accuracy
from opsuite.pipeline.outcome import KINDS, SKIP_REASONS, STAGES
from opsuite.results.record import (
    SCHEMA_VERSION,
    DelegationCounts,
    ErrorInfo,
    OutputAccuracy,
    Record,
    SchemaVersionError,
)

numbers = st.floats(allow_nan=True, allow_infinity=True)
counts = st.integers(0, 2**40)
outcomes = st.sampled_from(
    [name for name in KINDS if name not in ("fail", "skip")]
    + [f"fail:{stage}" for stage in STAGES]
    + [f"skip:{reason}" for reason in SKIP_REASONS]
)
accuracies = st.builds(
    Accuracy, max_abs=numbers, mae=numbers, sqnr_db=st.none() | numbers, sqnr_centred_db=st.none() | numbers
)
outputs = st.builds(
    OutputAccuracy,
    output=counts,
    shape=st.lists(counts, max_size=4),
    dtype=st.text(),
    against_converted=st.none() | accuracies,
    against_float=st.none() | accuracies,
)
tallies = st.dictionaries(st.text(), counts, max_size=3)
delegations = st.builds(
    DelegationCounts,
    delegated_nodes=counts,
    undelegated_nodes=counts,
    delegated_node_percent=st.none() | numbers,
    delegated_op_percent=st.none() | numbers,
    delegated_ops=tallies,
    undelegated_ops=tallies,
)
records = st.builds(
    Record,
    id=st.text(),
    suite=st.text(),
    flow=st.text(),
    outcome=outcomes,
    delegated=st.none() | st.sampled_from(["full", "partial", "none"]),
    stage=st.none() | st.sampled_from(STAGES),
    error=st.none() | st.builds(ErrorInfo, type=st.text(), message=st.text(), traceback=st.none() | st.text()),
    seconds=st.dictionaries(st.text(), numbers, max_size=3),
    delegation=st.none() | delegations,
    accuracy=st.lists(outputs, max_size=2),
    quantization=st.lists(outputs, max_size=2),
    seed=counts,
    environment=st.text(),
)


def same(left, right):
    """Equality under which NaN equals NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@given(records)
def test_a_record_survives_its_line(record):
    line = record.to_line()
    assert "\n" not in line
    assert same(Record.from_line(line).model_dump(), record.model_dump())


@given(records)
def test_a_line_is_json_as_every_reader_knows_it(record):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    json.loads(record.to_line(), parse_constant=refuse)


def known_to_a_newer_minor(value):
    """Adds an unknown field to every object."""
    if isinstance(value, dict):
        return {**{key: known_to_a_newer_minor(item) for key, item in value.items()}, "field_of_1_7": 1}
    return [known_to_a_newer_minor(item) for item in value] if isinstance(value, list) else value


def test_fields_of_a_newer_minor_version_are_ignored():
    figures = Accuracy(max_abs=1.0, mae=0.5, sqnr_db=math.inf)
    record = Record(
        id="case",
        suite="suite",
        flow="portable",
        outcome="fail:lower",
        error=ErrorInfo(type="ValueError", message="no"),
        accuracy=[OutputAccuracy(output=0, shape=[2], dtype="float32", against_float=figures)],
        seed=0,
        environment="0",
    )
    newer = known_to_a_newer_minor(json.loads(record.to_line()))
    newer["schema_version"] = SCHEMA_VERSION.partition(".")[0] + ".7"
    # Every object of the schema is open but these two, whose keys are data.
    assert newer.pop("seconds") == {"field_of_1_7": 1}
    read = Record.from_line(json.dumps(newer))
    assert read.model_dump(exclude={"schema_version"}) == record.model_dump(exclude={"schema_version"})


@pytest.mark.parametrize("version", ["2.0", "0.9", "11.0", "", None, 1])
def test_unknown_majors_are_refused(version):
    record = Record(id="case", suite="suite", flow="portable", outcome="pass", seed=0, environment="0")
    line = json.dumps({**json.loads(record.to_line()), "schema_version": version})
    with pytest.raises(SchemaVersionError, match=r"this opsuite reads 1\.x"):
        Record.from_line(line)


@pytest.mark.parametrize("outcome", ["passed", "fail", "fail:nowhere", "skip", "skip:mood", "pass:full", ""])
def test_an_outcome_outside_the_table_is_refused(outcome):
    with pytest.raises(ValueError, match="not an outcome"):
        Record(id="case", suite="suite", flow="portable", outcome=outcome, seed=0, environment="0")
