"""WHAT is tested: cases and the suites that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsuite.cases.case import Built, Case, CaseSkipped, function_module
from opsuite.cases.executorch import ExecutorchSuite
from opsuite.cases.suite import SUITES, CaseSuite, Listing, find_suite, resolve

if TYPE_CHECKING:
    from opsuite.flows.flow import Flow

__all__ = ["SUITES", "Built", "Case", "CaseSkipped", "CaseSuite", "Listing", "find_suite", "function_module", "resolve"]


class _OwnOperators:
    """Our own operators suite; its families are imported when it is first asked for something."""

    name = "operators"

    def listing(self, flow: Flow) -> Listing:
        from opsuite.cases.operators import load

        return load().listing(flow)

    def case(self, case_id: str) -> Case:
        from opsuite.cases.operators import load

        return load().case(case_id)


SUITES.register(_OwnOperators())
SUITES.register(ExecutorchSuite("operators"))
SUITES.register(ExecutorchSuite("models", needs_one_of=("torchvision", "torchaudio")))
