"""Stage lower: edge program, partitioning, and the backend's own compilation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from opsuite.pipeline.delegation import Delegation, count_ops
from opsuite.pipeline.state import State


def run(state: State) -> None:
    """Sets `edge` and `delegation`."""
    from executorch.exir import to_edge_transform_and_lower

    partitioners = state.flow.partitioners()
    before: list[Counter[str]] = []
    for partitioner in partitioners:
        _watch(partitioner, before)
    state.edge = to_edge_transform_and_lower(
        state.exported, partitioner=partitioners, compile_config=state.flow.compile_config()
    )
    after = count_ops(state.edge.exported_program(name).graph_module for name in state.edge.methods)
    # Only the first partitioner sees the graph before anything was delegated.
    state.delegation = Delegation.from_counts(before[0] if before else after, after)


def _watch(partitioner: Any, counts: list[Counter[str]]) -> None:
    """Counts the ops of each edge program that the partitioner is handed.

    An ETRecord would give the same counts, at the price of deep copies of the edge program.
    """
    partition = partitioner.partition

    def counted(exported_program: Any) -> Any:
        counts.append(count_ops([exported_program.graph_module]))
        return partition(exported_program)

    partitioner.partition = counted
