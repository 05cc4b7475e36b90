"""What this environment is: versions, platform, and a fingerprint that records carry."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import platform

import opsuite

PACKAGES = ("torch", "executorch", "torchao", "coremltools", "numpy", "pytest")
"""The packages whose versions can change a verdict."""


def package_version(name: str) -> str | None:
    """The installed version of a distribution, or None where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """Names and versions of everything that can change a verdict."""
    versions = {name: package_version(name) or "not installed" for name in PACKAGES}
    return {
        "opsuite": opsuite.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        **versions,
    }


def fingerprint() -> str:
    """Twelve hexadecimal digits that differ whenever `environment()` does."""
    return hashlib.sha256(json.dumps(environment(), sort_keys=True).encode()).hexdigest()[:12]
