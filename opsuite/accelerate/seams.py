"""Attributes of the installed libraries that parts replace, and how an unknown one is told from a known one."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_ABSENT = object()


@dataclass(frozen=True)
class Seam:
    """One attribute, written `module:name` or `module:Class.name`, and what must hold before it is replaced."""

    where: str
    parameters: tuple[str, ...] | None = None  # names in order, "*" and "**" before the variadic ones
    mentions: tuple[str, ...] = ()  # names its code uses, nested functions included
    sources: frozenset[str] = frozenset()  # digests of the sources it may have; empty means any
    absent: bool = False  # an attribute to add: it must not be there yet


@dataclass(frozen=True)
class Found:
    """A recognised seam: where the attribute lives and what is there now, as stored (not as bound)."""

    seam: Seam
    owner: Any
    name: str
    value: Any


def locate(seam: Seam) -> Found | str:
    """The attribute behind `seam`, or one sentence that says why it is not what opsuite knows."""
    module_name, _, path = seam.where.partition(":")
    try:
        owner: Any = import_module(module_name)
    except Exception as error:  # a library that fails to import may raise anything
        return f"{module_name} cannot be imported ({type(error).__name__}: {error})"
    *holders, name = path.split(".")
    for holder in holders:
        owner = getattr(owner, holder, None)
    value = vars(owner).get(name, _ABSENT) if owner is not None else _ABSENT
    if owner is not None and seam.absent:
        return f"{seam.where} exists already" if value is not _ABSENT else Found(seam, owner, name, value)
    if value is _ABSENT:
        return f"{seam.where} does not exist"
    return _mismatch(seam, value) or Found(seam, owner, name, value)


def _mismatch(seam: Seam, value: Any) -> str:
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    if seam.parameters is not None:
        found = parameters_of(function)
        if found != seam.parameters:
            return f"{seam.where} takes ({', '.join(found or ('?',))}) instead of ({', '.join(seam.parameters)})"
    missing = set(seam.mentions) - names_in(function)
    if missing:
        return f"{seam.where} no longer uses {', '.join(sorted(missing))}"
    if seam.sources and digest_of(function) not in seam.sources:
        return f"the source of {seam.where} is not one that is known ({digest_of(function)})"
    return ""


def parameters_of(function: Any) -> tuple[str, ...] | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    mark: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return tuple(mark.get(p.kind, "") + p.name for p in signature.parameters.values())


def names_in(function: Any) -> set[str]:
    """Every name the code of `function` refers to, with the code of what is wrapped or nested in it."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    names: set[str] = set()
    waiting = [code] if code else []
    while waiting:
        current = waiting.pop()
        names.update(current.co_names, current.co_freevars, current.co_varnames)
        waiting.extend(constant for constant in current.co_consts if inspect.iscode(constant))
    return names


def digest_of(function: Any) -> str:
    """A digest of the source text that does not see white space."""
    try:
        source = inspect.getsource(inspect.unwrap(function) if callable(function) else function)
    except (OSError, TypeError):
        return "no source"
    return hashlib.sha256("".join(source.split()).encode()).hexdigest()[:16]


@dataclass
class Replacement:
    """Puts a value in the place of an attribute and back."""

    found: Found
    value: Any

    def apply(self) -> None:
        setattr(self.found.owner, self.found.name, self.value)

    def restore(self) -> None:
        if self.found.value is _ABSENT:
            delattr(self.found.owner, self.found.name)
        else:
            setattr(self.found.owner, self.found.name, self.found.value)


# What a part does once its seams are known: replacements by `where`, and what to call when it is undone.
Installed = tuple[dict[str, Any], Callable[[], None] | None]


@dataclass(frozen=True)
class Part:
    name: str
    does: str
    seams: tuple[Seam, ...]
    install: Callable[[dict[str, Any]], Installed]
    # Seams that may be absent: the part works on those that are there.
    optional: tuple[Seam, ...] = ()
