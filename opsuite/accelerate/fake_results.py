"""Passes replay every op on the fake tensors of the graph before, and verifiers replay it again.

What an op returned for the very same fake tensors and literals is handed out again instead, as long as shapes are
static and no other mode is watching. The n-th identical call of a replay gets the n-th result, so that nodes which had
tensors of their own still have them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Hashable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from opsuite.accelerate.seams import Installed, Part, Seam

_CALL = Seam("torch.fx.interpreter:Interpreter.call_function", sources=frozenset(("c7f1fe77e81e8832",)))
_FX = Seam("executorch.exir.pass_base:_ExportPassBase._fx", sources=frozenset(("76493d396632ebc9",)))
_CHECK = Seam(
    "executorch.exir.verification.arg_validator:EdgeOpArgValidator.call_function",
    sources=frozenset(("e9482e7b187dadaf",)),
)

_LITERALS = (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None))
# Dead entries of a mode are dropped all together when it has this many.
_MOST_ENTRIES = 200_000
_SEEN = "_opsuite_calls_seen"


class Unknown(Exception):
    """An argument or a situation that the memory does not cover."""


class Results:
    """Results by op and arguments for one fake mode; it keeps no tensor alive."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[list[Any], type | None, list[Any]]] = {}

    def get(self, key: Hashable, tensors: list[Any]) -> Any:
        entry = self._entries.get(key)
        if entry is None:
            return None
        arguments, kind, results = entry
        # An id is reused after its object died, so the reference has to lead to the same object.
        if any(reference() is not tensor for reference, tensor in zip(arguments, tensors, strict=True)):
            return None
        found = [reference() for reference in results]
        if any(result is None for result in found):
            return None
        return found[0] if kind is None else kind(found)

    def put(self, key: Hashable, tensors: list[Any], result: Any, mode: Any) -> None:
        kind = type(result) if type(result) in (tuple, list) else None
        results = list(result) if kind else [result]
        if not results or not all(_is_plain(item, mode) for item in results):
            return
        if len(self._entries) >= _MOST_ENTRIES:
            self._entries.clear()
        self._entries[key] = ([weakref.ref(t) for t in tensors], kind, [weakref.ref(r) for r in results])


def _is_plain(value: Any, mode: Any) -> bool:
    return (
        type(value) is FakeTensor
        and value.fake_mode is mode
        and value.constant is None
        and not value._has_symbolic_sizes_strides
    )


def key_of(value: Any, mode: Any, tensors: list[Any]) -> Hashable:
    """What tells two arguments apart; the tensors met are added to `tensors`."""
    if isinstance(value, torch.Tensor):
        if not _is_plain(value, mode):
            raise Unknown
        tensors.append(value)
        return id(value)
    if type(value) in _LITERALS:
        return (type(value), value)
    if isinstance(value, list | tuple):
        return (isinstance(value, list), *(key_of(item, mode, tensors) for item in value))
    raise Unknown


def only_fake_mode() -> Any:
    """The fake mode if it is the only thing that sees calls of ops, otherwise None."""
    if torch._C._len_torch_dispatch_stack() != 1 or torch._C._len_torch_function_stack():
        return None
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)


def _call_key(op: Any, args: Any, kwargs: dict[str, Any], mode: Any, tensors: list[Any]) -> Hashable:
    included = torch._C._dispatch_tls_local_include_set()
    return (
        op,
        included.has(torch._C.DispatchKey.PythonDispatcher),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        key_of(tuple(args), mode, tensors),
        tuple((name, key_of(value, mode, tensors)) for name, value in kwargs.items()),
    )


def _install(originals: dict[str, Any]) -> Installed:
    from executorch.exir.dialects.edge._ops import EdgeOpOverload
    from executorch.exir.verification.arg_validator import EdgeOpArgValidator

    call = originals[_CALL.where]
    memory: weakref.WeakKeyDictionary[Any, Results] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def call_function(self: Any, target: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if type(self) is not torch.fx.Interpreter and type(self) is not EdgeOpArgValidator:
            return call(self, target, args, kwargs)
        op = target._op if isinstance(target, EdgeOpOverload) else target
        mode = only_fake_mode()
        if not isinstance(op, torch._ops.OpOverload) or not isinstance(mode, FakeTensorMode) or op._schema.is_mutable:
            return call(self, target, args, kwargs)
        tensors: list[Any] = []
        try:
            key = _call_key(op, args, kwargs, mode, tensors)
        except Unknown:
            return call(self, target, args, kwargs)
        seen = vars(self).setdefault(_SEEN, {})
        times = seen[key] = seen.get(key, -1) + 1
        results = memory.setdefault(mode, Results())
        result = results.get((key, times), tensors)
        if result is None:
            result = call(self, target, args, kwargs)
            results.put((key, times), tensors, result, mode)
        return result

    return {_CALL.where: call_function}, memory.clear


PART = Part(
    "replayed-ops",
    "passes and verifiers that replay a graph: reuse the fake result of the same op on the same fake tensors",
    (_CALL, _FX, _CHECK),
    _install,
)
