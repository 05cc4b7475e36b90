"""Our own operator cases, one module a family."""

from __future__ import annotations

import importlib
import pkgutil

from opsuite.cases.suite import CaseSuite

OPERATORS = CaseSuite("operators")


def load() -> CaseSuite:
    """The suite, with every family's module imported."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return OPERATORS
