"""opsuite: operator suites, quantizer and runtimes for ExecuTorch and Core ML."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # `import opsuite; opsuite.accelerate()` works without the plain import paying for it.
    if name == "accelerate":
        return import_module("opsuite.accelerate")
    raise AttributeError(f"module 'opsuite' has no attribute {name!r}")
