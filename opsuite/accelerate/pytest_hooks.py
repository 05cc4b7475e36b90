"""The pytest plugin: parts are on from the start of the session, in every xdist worker, to its end."""

from __future__ import annotations

from typing import Any

_KEY = "_opsuite_acceleration"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("opsuite")
    for name, text in _OPTIONS.items():
        group.addoption(f"--{name}", default=None, help=text)
        parser.addini(name.replace("-", "_"), help=text, default="")


_OPTIONS = {
    "accelerate-parts": "parts of opsuite.accelerate to apply, with commas between: all (default), none, or names",
    "accelerate-without": "parts of opsuite.accelerate to leave out, with commas between",
    "accelerate-patterns": "what to do about pattern graphs of Core ML quantizers: a strategy of opsuite.accelerate",
}


def _option(config: Any, name: str) -> str:
    return config.getoption(f"--{name}") or config.getini(name.replace("-", "_")) or ""


def pytest_configure(config: Any) -> None:
    import pytest

    from opsuite.accelerate.switch import DEFAULT_PATTERNS, accelerate

    parts = _option(config, "accelerate-parts") or "all"
    chosen = {"all": None, "none": []}.get(parts, _names(parts))
    try:
        acceleration = accelerate(
            chosen,
            without=_names(_option(config, "accelerate-without")),
            patterns=_option(config, "accelerate-patterns") or DEFAULT_PATTERNS,
        )
    except ValueError as error:
        raise pytest.UsageError(f"opsuite.accelerate: {error}") from error
    setattr(config, _KEY, acceleration)


def pytest_unconfigure(config: Any) -> None:
    acceleration = getattr(config, _KEY, None)
    if acceleration is not None:
        acceleration.undo()


def pytest_report_header(config: Any) -> list[str]:
    acceleration = getattr(config, _KEY, None)
    if acceleration is None:
        return []
    lines = [f"opsuite.accelerate: {', '.join(acceleration.applied) or 'nothing applied'}"]
    return lines + [f"  {row}" for row in acceleration.rows if row.reason]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
