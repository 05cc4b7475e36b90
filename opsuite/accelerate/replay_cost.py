"""Costs of replaying a graph besides its ops: mapping over arguments, and running delegates that were run before."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from opsuite.accelerate.fake_results import Unknown, key_of
from opsuite.accelerate.seams import Installed, Part, Seam

_MAP_ONLY = Seam(
    "torch.utils._pytree:tree_map_only",
    parameters=("type_or_types_or_pred", "func", "tree", "is_leaf"),
    sources=frozenset(("d32093b75c80f644",)),
)
_TREES = tuple(Seam(f"{module}:pytree") for module in ("executorch.exir.pass_base", "torch._export.pass_base"))


def quick_map_only(original: Callable[..., Any], supported: Any) -> Callable[..., Any]:
    """`tree_map_only` for one type over tuples, lists and dictionaries, without building a description of the tree."""

    def map_only(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
        if is_leaf is not None or type(kind) is not type:
            return original(kind, func, tree, is_leaf)

        def walk(value: Any) -> Any:
            cls = type(value)
            if cls is tuple:
                return tuple([walk(item) for item in value])
            if cls is list:
                return [walk(item) for item in value]
            if cls is dict:
                return {key: walk(item) for key, item in value.items()}
            if cls in supported or isinstance(value, tuple):
                return original(kind, func, value)
            return func(value) if isinstance(value, kind) else value

        return walk(tree)

    return map_only


def _install_map(originals: dict[str, Any]) -> Installed:
    from torch.utils import _pytree

    class Pytree(types.ModuleType):
        """torch's pytree as the passes see it."""

        tree_map_only = staticmethod(quick_map_only(originals[_MAP_ONLY.where], _pytree.SUPPORTED_NODES))

        def __getattr__(self, name: str) -> Any:
            return getattr(_pytree, name)

    shim = Pytree(_pytree.__name__)
    return {seam.where: shim for seam in _TREES if originals[seam.where] is _pytree}, None


MAP = Part(
    "pass-arguments",
    "passes: map over the arguments of a node without describing their tree first",
    (_MAP_ONLY, *_TREES),
    _install_map,
)

_DELEGATE = Seam(
    "torch._higher_order_ops.executorch_call_delegate:call_delegate_cpu", sources=frozenset(("12774cda8868c59e",))
)


def _layout_of(value: Any) -> tuple[Any, ...]:
    return (tuple(value.shape), value.stride(), value.dtype, value.device)


def _outputs_layout(result: Any, arguments: list[Any], mode: Any) -> list[tuple[Any, ...]] | None:
    """Layouts of fresh outputs, or None when they are not just that."""
    if type(result) not in (tuple, list):
        return None
    tensors: list[Any] = []
    try:
        for item in result:
            if not isinstance(item, FakeTensor):
                return None
            key_of(item, mode, tensors)
    except Unknown:
        return None
    if any(t.requires_grad or t.storage_offset() for t in tensors) or any(t is a for t in tensors for a in arguments):
        return None
    return [_layout_of(t) for t in tensors]


def _install_delegate(originals: dict[str, Any]) -> Installed:
    call = originals[_DELEGATE.where]
    memory: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def call_once(lowered_module: Any, *args: Any) -> Any:
        mode: Any = getattr(args[0], "fake_mode", None) if args else None
        try:
            key_of(args, mode, [])
            if not all(isinstance(argument, FakeTensor) for argument in args):
                raise Unknown
        except Unknown:
            return call(lowered_module, *args)
        key = (id(lowered_module.original_module), *(_layout_of(argument) for argument in args))
        known = memory.setdefault(lowered_module, {})
        if key in known:
            kind, layouts = known[key]
            with mode:
                return kind(torch.empty_strided(s, t, dtype=d, device=v) for s, t, d, v in layouts)
        result = call(lowered_module, *args)
        layouts = _outputs_layout(result, list(args), mode)
        if layouts is not None:
            known[key] = (type(result), layouts)
        return result

    return {_DELEGATE.where: call_once}, memory.clear


DELEGATE = Part(
    "delegate-calls",
    "passes over a graph with delegates: run a delegate's graph on fake tensors once, then make outputs of that layout",
    (_DELEGATE,),
    _install_delegate,
)
