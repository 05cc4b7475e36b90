"""Pattern graphs kept by the arguments they were built from, and handed out as fresh copies.

Matchers strip the name map out of the graph they are given, so a graph that was used once cannot be used again. The key
is the code and the closure of the pattern's function: class names do not tell patterns apart, because every pattern
class is local to its builder.
"""

from __future__ import annotations

import copy
import threading
import types
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Unkeyed(Exception):
    """The arguments hold something whose effect on the export is not known; the pattern is built anew."""


class PatternCache:
    def __init__(self) -> None:
        self.builds = 0
        self._masters: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._masters)

    def get(self, build: Callable[..., Any], pattern: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """What `build(pattern, inputs, ...)` returns, built once for each distinct set of arguments."""
        try:
            key = pattern_key(pattern, inputs, args, kwargs)
        except Unkeyed:
            return build(pattern, inputs, *args, **kwargs)
        # Held while building: torch.export is not made for two threads at a time.
        with self._lock:
            master = self._masters.get(key)
            if master is None:
                self.builds += 1
                master = self._masters[key] = build(pattern, inputs, *args, **kwargs)
            # Copied under the lock too: a copy of a module walks its dictionaries.
            return copy.deepcopy(master)

    def clear(self) -> None:
        with self._lock:
            self._masters.clear()


def pattern_key(pattern: Any, inputs: Any, args: Any, kwargs: dict[str, Any]) -> Hashable:
    return (
        _of_function(pattern_function(pattern)),
        _of_value(tuple(inputs)),
        _of_value(tuple(args)),
        tuple((name, _of_value(value)) for name, value in kwargs.items()),
        _export_state(),
    )


def pattern_function(pattern: Any) -> types.FunctionType:
    """The function that a pattern module wraps: its `fn` where it has one, otherwise its class's own `forward`."""
    if isinstance(pattern, torch.nn.Module):
        if any(True for _ in pattern.parameters()) or any(True for _ in pattern.buffers()):
            raise Unkeyed
        wrapped = vars(pattern).get("fn")
        function = wrapped if wrapped is not None else type(pattern).forward
    else:
        function = pattern
    if not isinstance(function, types.FunctionType) or function.__defaults__ or function.__kwdefaults__:
        raise Unkeyed
    return function


def closure_of(function: types.FunctionType) -> dict[str, Any]:
    """Values of the variables a function takes from around it, by name."""
    names = function.__code__.co_freevars
    try:
        return {name: cell.cell_contents for name, cell in zip(names, function.__closure__ or (), strict=True)}
    except ValueError:
        raise Unkeyed from None


def _of_function(function: types.FunctionType) -> Hashable:
    closure = closure_of(function)
    return (function.__module__, function.__code__, tuple((name, _of_value(value)) for name, value in closure.items()))


def _of_value(value: Any) -> Hashable:
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return (type(value), value)
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.device, value.requires_grad, value.stride())
    if isinstance(value, tuple | list):
        return (type(value), tuple(map(_of_value, value)))
    if isinstance(value, types.FunctionType):
        # A function at the top of a module is itself wherever it is met; one made inside another is its code and cells.
        return value if "<locals>" not in value.__qualname__ else _of_function(value)
    if isinstance(value, types.BuiltinFunctionType | torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return value
    raise Unkeyed


def _export_state() -> Hashable:
    """Modes that change what an export records."""
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
    )


class Scope(threading.local):
    """Says, for one thread, whether it is inside a call that knows how to take patterns that are not built yet."""

    def __init__(self) -> None:
        self.value: Any = None

    @contextmanager
    def entered(self, value: Any) -> Iterator[None]:
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before
