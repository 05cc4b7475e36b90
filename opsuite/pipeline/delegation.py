"""What was delegated: operators counted in the edge program before and after partitioning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

NOT_COUNTED = frozenset({"executorch_call_delegate", "getitem"})
"""Bookkeeping of the graph, which no backend could take."""


def target_name(target: Any) -> str:
    """An operator's name with its overload, such as `aten::add.Tensor`."""
    if hasattr(target, "name") and callable(target.name):
        return str(target.name())
    return str(getattr(target, "__name__", target))


def count_ops(graph_modules: Iterable[Any]) -> Counter[str]:
    """Operators by name over the graphs and the control-flow sub-graphs in them, but not delegates' own graphs."""
    names: Counter[str] = Counter()
    for graph_module in graph_modules:
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and target_name(node.target) not in NOT_COUNTED:
                names[target_name(node.target)] += 1
    return names


def _percent(part: int, whole: int) -> float | None:
    return 100.0 * part / whole if whole else None


@dataclass(frozen=True)
class Delegation:
    """Operators by name, with how often each was delegated and how often not."""

    delegated: Counter[str]
    undelegated: Counter[str]

    @classmethod
    def from_counts(cls, before: Counter[str], after: Counter[str]) -> Delegation:
        """From the counts before and after partitioning."""
        return cls(before - after, after)

    @property
    def extent(self) -> str:
        """`full`, `partial` or `none`; `none` also where there was nothing to delegate."""
        if not self.delegated:
            return "none"
        return "partial" if self.undelegated else "full"

    @property
    def node_percent(self) -> float | None:
        """Delegated nodes among all, in percent; None where there are none."""
        return _percent(self.delegated.total(), self.delegated.total() + self.undelegated.total())

    @property
    def op_percent(self) -> float | None:
        """Distinct operators with a delegated node among all distinct ones, in percent; None where there are none."""
        return _percent(len(self.delegated), len(self.delegated.keys() | self.undelegated.keys()))
