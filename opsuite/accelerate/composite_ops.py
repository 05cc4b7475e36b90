"""torch looks up every composite-implicit op by name, once per operator namespace and twice per lowering."""

from __future__ import annotations

import functools
from typing import Any

import torch

from opsuite.accelerate.seams import Installed, Part, Seam

_MATERIALIZE = Seam(
    "torch._export.utils:_materialize_cpp_cia_ops",
    parameters=(),
    mentions=("_dispatch_get_registrations_for_dispatch_key", "ops"),
)


def _install(originals: dict[str, Any]) -> Installed:
    materialize = originals[_MATERIALIZE.where]
    seen: set[tuple[str, ...]] = set()

    @functools.wraps(materialize)
    def materialize_new() -> None:
        # An op stays in torch.ops once it was looked up, so only a registration that is new asks for another round.
        registered = tuple(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))
        if registered not in seen:
            materialize()
            seen.clear()
            seen.add(registered)

    return {_MATERIALIZE.where: materialize_new}, None


PART = Part(
    "composite-ops",
    "look up torch's composite-implicit ops once for each set of registered ops",
    (_MATERIALIZE,),
    _install,
)
