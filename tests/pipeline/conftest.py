from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch

from opsuite.cases import Case, function_module
from opsuite.flows import FLOWS
from opsuite.pipeline.pipeline import Request, run_case
from opsuite.results.record import Record

os.environ["TQDM_DISABLE"] = "1"


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def taken() -> Callable[..., Record]:
    """Takes a case, or a function with inputs, through a flow."""

    def taken(what, *inputs, flow="portable", runtime="auto", **notes) -> Record:
        case = what if isinstance(what, Case) else Case("case", lambda: (module(what), inputs))
        found = FLOWS.get(flow) if isinstance(flow, str) else flow
        return run_case(case, found, Request("suite", runtime=runtime), **notes)

    def module(what):
        return what if isinstance(what, torch.nn.Module) else function_module(what)

    return taken
