"""States of a model, which live on between predictions."""

from __future__ import annotations

from typing import Any

from opsuite.runtime.mil.errors import OpError
from opsuite.runtime.mil.registry import Call, Tensor, op, since
from opsuite.runtime.mil.rounding import settle
from opsuite.runtime.mil.state import State


@op("read_state", opsets=since("CoreML8"))
def read_state(input: Any) -> Tensor:
    # Values are never changed in place, so that this is as good as a copy.
    return _state(input).value


@op("write_state", opsets=since("CoreML8"))
def write_state(call: Call, input: Any, data: Tensor) -> tuple[()]:
    _update(call, _state(input), data)
    return ()


@op("coreml_update_state", opsets=since("CoreML8"))
def coreml_update_state(call: Call, state: Any, value: Tensor) -> Tensor:
    """Updates the state and gives its new value."""
    return _update(call, _state(state), value)


def _update(call: Call, state: State, value: Tensor) -> Tensor:
    state.value = settle(value, state.type, "storage" if call.half_is_rounded else "fp32")[0]
    return state.value


def _state(value: Any) -> State:
    if not isinstance(value, State):
        raise OpError(f"a state is wanted, not {type(value).__name__}")
    return value
