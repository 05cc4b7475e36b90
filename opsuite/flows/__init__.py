"""HOW cases are lowered: the flows, ours first, then what the installed executorch has besides."""

from opsuite.flows import coreml, executorch, portable, xnnpack  # noqa: F401  (importing a module registers its flows)
from opsuite.flows.flow import FLOWS, Flow, Requirement

__all__ = ["FLOWS", "Flow", "Requirement"]
