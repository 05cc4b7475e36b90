"""coremltools checks the whole program after each of its hundred passes, counting every edge several times over.

The checks here accept what the original accepts, counting each edge once. A program they do not accept, or that has
nested blocks, goes to the original, which has the last word and the message.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opsuite.accelerate.seams import Installed, Part, Seam

_BLOCK = "coremltools.converters.mil.mil.block:Block"
_OPERATION = "coremltools.converters.mil.mil.operation:Operation"
_VALIDATE = Seam(f"{_BLOCK}.validate", sources=frozenset(("bd5ba89bf0ac186a",)))
_VISIBILITY = Seam(f"{_BLOCK}._check_vars_visibility_in_block", sources=frozenset(("8370ca5ff147b203",)))
_PROPAGATE = Seam(f"{_BLOCK}._propagate_nonreplaceable_vars", sources=frozenset(("85c8b51c5c83d8d4",)))
_FLATTEN = Seam(f"{_OPERATION}.get_flattened_inputs", sources=frozenset(("30b6139e2a331aa5",)))
_SET_UPSTREAM = Seam(
    "coremltools.converters.mil.mil.var:Var._set_nonreplaceable_vars_upstream",
    sources=frozenset(("996f3b84438f1005",)),
)


def is_sound(function: Any, internal_var: type) -> bool:
    """Whether every input is visible where it is used and both ends of every edge agree, for a flat function."""
    visible = set(function.inputs.values())
    allowed = function._internal_vars
    internal: set[Any] = set()
    uses: dict[Any, list[Any]] = {}
    for op in function.operations:
        if op.blocks or op.outputs is None:
            return False
        for value in op._input_vars.values():
            if isinstance(value, internal_var):
                internal.add(value)
                continue
            for var in value if isinstance(value, list | tuple) else () if value is None else (value,):
                if var not in visible and var not in allowed:
                    return False
                uses.setdefault(var, []).append(op)
        visible.update(op.outputs)
    return internal == allowed and _edges_agree(uses, visible) and _outputs_agree(function)


def _edges_agree(uses: dict[Any, list[Any]], variables: set[Any]) -> bool:
    for var in variables.union(uses):
        consumers, children = uses.get(var, ()), var.child_ops
        if len(consumers) != len(children):
            return False
        if len(consumers) == 1:
            if consumers[0] is not children[0]:
                return False
        elif consumers and sorted(map(id, consumers)) != sorted(map(id, children)):
            return False
    return True


def _outputs_agree(function: Any) -> bool:
    for op in function.operations:
        for var in op.outputs:
            if any(var not in block.outputs for block in var.consuming_blocks):
                return False
    return all(function in var.consuming_blocks for var in function.outputs)


def nothing_to_propagate(function: Any) -> bool:
    """Whether no variable of a flat function is, or descends from, one that must not be replaced."""
    if any(var._nonreplaceable_vars_upstream for var in function.inputs.values()):
        return False
    for op in function.operations:
        if op.blocks or op.outputs is None or type(op).__name__.startswith("constexpr_"):
            return False
        for var in op.outputs:
            if var._nonreplaceable_vars_upstream:
                return False
    return True


def _install(originals: dict[str, Any]) -> Installed:
    from coremltools.converters.mil.mil import block
    from coremltools.converters.mil.mil.var import InternalVar

    validate: Callable[..., None] = originals[_VALIDATE.where]
    propagate: Callable[..., None] = originals[_PROPAGATE.where]

    @functools.wraps(validate)
    def validate_once(self: Any, force_validate: bool = False, check_essential_scope: bool = False) -> None:
        if (block.DEBUG or force_validate) and isinstance(self, block.Function) and is_sound(self, InternalVar):
            if check_essential_scope:
                self._check_has_scope_info()
            return
        validate(self, force_validate=force_validate, check_essential_scope=check_essential_scope)

    @functools.wraps(propagate)
    def propagate_if_needed(self: Any) -> None:
        if not (isinstance(self, block.Function) and nothing_to_propagate(self)):
            propagate(self)

    return {_VALIDATE.where: validate_once, _PROPAGATE.where: propagate_if_needed}, None


PART = Part(
    "mil-checks",
    "coremltools' checks of the program between its passes: the same checks, each edge counted once",
    (_VALIDATE, _VISIBILITY, _PROPAGATE, _FLATTEN, _SET_UPSTREAM),
    _install,
)

_TYPE_INFO = Seam(
    "coremltools.converters.mil.mil.types.type_mapping:get_type_info", sources=frozenset(("f80501c86dae0bb2",))
)
_MOST_TYPES = 10_000


def _install_types(originals: dict[str, Any]) -> Installed:
    get_type_info = originals[_TYPE_INFO.where]
    known: dict[type, Any] = {}

    @functools.wraps(get_type_info)
    def type_info_once(t: Any) -> Any:
        # A type of MIL is a class that says what it is when asked, and always the same.
        if type(t) is not type:
            return get_type_info(t)
        info = known.get(t)
        if info is None:
            if len(known) >= _MOST_TYPES:
                known.clear()
            info = known[t] = get_type_info(t)
        return info

    return {_TYPE_INFO.where: type_info_once}, known.clear


TYPES = Part("mil-types", "coremltools' description of a type: made once for each type", (_TYPE_INFO,), _install_types)
