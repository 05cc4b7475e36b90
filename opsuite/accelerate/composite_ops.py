"""torch readies every composite-implicit op for each decomposition: looks them all up, and overrides most of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from opsuite.accelerate.pattern_cache import Scope
from opsuite.accelerate.seams import Installed, Part, Seam

_UTILS = "torch._export.utils"
_MATERIALIZE = Seam(
    f"{_UTILS}:_materialize_cpp_cia_ops",
    parameters=(),
    mentions=("_dispatch_get_registrations_for_dispatch_key", "ops"),
)
_COLLECT = tuple(
    Seam(f"{module}:_collect_all_valid_cia_ops", parameters=(), mentions=("_collect_all_valid_cia_ops_for_namespace",))
    for module in (_UTILS, "torch.export.exported_program", "torch.export.decomp_utils")
)
_EXPORTED = "torch.export.exported_program"
_OVERRIDE = Seam(f"{_EXPORTED}:_override_composite_implicit_decomp", sources=frozenset(("9e4f753c17bb081e",)))
_DEREGISTER = Seam(
    "torch._subclasses.fake_impls:_deregister_op_impl", parameters=("op",), mentions=("op_implementations_dict",)
)


def _install_lookup(originals: dict[str, Any]) -> Installed:
    materialize = originals[_MATERIALIZE.where]
    collecting = Scope()
    seen: set[tuple[str, ...]] = set()

    @functools.wraps(materialize)
    def materialize_new() -> None:
        if collecting.value and collecting.value["done"]:
            return
        # An op stays in torch.ops once it was looked up, so only a registration that is new asks for another round.
        registered = tuple(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))
        if registered not in seen:
            materialize()
            seen.clear()
            seen.add(registered)
        if collecting.value:
            collecting.value["done"] = True

    def collecting_once(collect: Callable[[], Any]) -> Callable[[], Any]:
        @functools.wraps(collect)
        def collect_once() -> Any:
            # One collection asks for each operator namespace; registrations do not change between them.
            with collecting.entered({"done": False}):
                return collect()

        return collect_once

    return {
        _MATERIALIZE.where: materialize_new,
        **{seam.where: collecting_once(originals[seam.where]) for seam in _COLLECT},
    }, None


LOOKUP = Part(
    "composite-ops",
    "look up torch's composite-implicit ops once for each set of registered ops",
    (_MATERIALIZE, *_COLLECT),
    _install_lookup,
)


@dataclass(frozen=True)
class _Override:
    """What overriding one op made of its kernels, and of what."""

    decomposition: Any
    before: dict[Any, Any]
    after: dict[Any, Any]
    fake_rule: Any

    def applies(self, decomposition: Any, kernels: dict[Any, Any]) -> bool:
        return self.decomposition is decomposition and _same(self.before, kernels)


def _same(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return len(one) == len(other) and all(key in other and other[key] is value for key, value in one.items())


def _install_override(originals: dict[str, Any]) -> Installed:
    from torch._subclasses.fake_impls import _deregister_op_impl, op_implementations_dict

    override = originals[_OVERRIDE.where]
    known: dict[Any, _Override] = {}

    @contextmanager
    def override_known(cia_ops_to_callable: dict[Any, Any]) -> Iterator[None]:
        anew, saved = {}, {}
        for op, decomposition in cia_ops_to_callable.items():
            record = known.get(op)
            usable = record is not None and record.applies(decomposition, op.py_kernels)
            if not usable or op in op_implementations_dict:
                anew[op] = decomposition
                continue
            saved[op] = op.py_kernels.copy()
        before = {op: op.py_kernels.copy() for op in anew}
        had_rule = {op for op in anew if op in op_implementations_dict}
        with override(anew):
            for op, kernels in before.items():
                if op not in had_rule:
                    rule = op_implementations_dict.get(op)
                    known[op] = _Override(anew[op], kernels, op.py_kernels.copy(), rule)
            try:
                for op in saved:
                    op.py_kernels.clear()
                    op.py_kernels.update(known[op].after)
                    op_implementations_dict[op] = known[op].fake_rule
                    op._dispatch_cache.clear()
                yield
            finally:
                for op, kernels in saved.items():
                    op.py_kernels.clear()
                    op.py_kernels.update(kernels)
                    op._dispatch_cache.clear()
                    _deregister_op_impl(op)

    return {_OVERRIDE.where: override_known}, known.clear


OVERRIDE = Part(
    "composite-overrides",
    "overriding of composite-implicit ops for a decomposition: build the tables of kernels once, then reuse them",
    (_OVERRIDE, _DEREGISTER),
    _install_override,
)
