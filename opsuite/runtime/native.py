"""The native runtime: `executorch.runtime`, with whatever backends are registered in it."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from opsuite.output import recorded


class MissingKernelError(RuntimeError):
    """The program calls an operator for which no kernel is registered."""


class ExecutionError(RuntimeError):
    """executorch refused to load or run the program; the message holds what its native code said of it."""


@functools.lru_cache(maxsize=1)
def _runtime() -> Any:
    from executorch.runtime import Runtime

    # Registers the kernels of quantized_decomposed; a build without them still runs float programs.
    with contextlib.suppress(ImportError):
        import executorch.kernels.quantized  # noqa: F401

    return Runtime.get()


def registered_backends() -> list[str]:
    """Names of the backends that this build of executorch can execute."""
    return sorted(name for name in _runtime().backend_registry.registered_backend_names if is_available(name))


def is_available(delegate: str) -> bool:
    """Whether a program with that delegate can be executed here."""
    return bool(_runtime().backend_registry.is_available(delegate))


def missing_delegates(delegates: Iterable[str]) -> list[str]:
    """Those of the delegates that nothing here executes."""
    return [name for name in delegates if not is_available(name)]


@functools.lru_cache(maxsize=1)
def _kernels() -> frozenset[str]:
    return frozenset(_runtime().operator_registry.operator_names)


def missing_kernels(operators: Iterable[tuple[str, str]]) -> list[str]:
    """Those of the (name, overload) pairs of a program for which no kernel is registered."""
    names = (f"{name}.{overload}" if overload else name for name, overload in operators)
    return [name for name in names if name not in _kernels()]


def execute(pte: bytes, inputs: tuple[Any, ...], method: str = "forward") -> list[torch.Tensor]:
    """Runs a method of a program.

    Args:
        pte: the program.
        inputs: the method's positional arguments, possibly nested; flattened in `torch.utils._pytree`'s order.

    Returns:
        Its outputs as tensors that live on after the program: numbers as rank-0 tensors.

    Raises:
        ExecutionError: the program cannot be loaded or run.
    """
    # The exception holds a number; what it means is printed by the native code.
    with recorded() as said:
        try:
            program = _runtime().load_program(pte)
            outputs = program.load_method(method).execute(pytree.tree_leaves(inputs))
        except RuntimeError as error:
            raise ExecutionError("; ".join([str(error), *_complaints(said())])) from error
    return [
        value.clone() if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        for value in outputs
        if value is not None
    ]


def _complaints(native_log: str) -> list[str]:
    """The first failed check and the failing instruction, out of what executorch's native code has printed.

    Its lines begin with a file and a line number; those of the libraries that it uses do not, and depend on what this
    process did before.
    """
    lines = re.findall(r"^\[[\w.]+:\d+\] (.*)", native_log, re.MULTILINE)
    telling = ("failed", "error", "attempted")
    first = next((line for line in lines if any(word in line.lower() for word in telling)), None)
    instruction = next((line for line in lines if line.startswith("KernelCall failed")), None)
    return list(dict.fromkeys(line for line in (first, instruction) if line is not None))
