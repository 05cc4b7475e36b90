"""HOW cases are lowered: the flows, ours first, then what the installed executorch has besides."""

from opsuite.flows import coreml, executorch, portable, xnnpack  # noqa: F401  (our own register when imported)
from opsuite.flows.flow import FLOWS, Flow, Requirement

executorch.register()

__all__ = ["FLOWS", "Flow", "Requirement"]
