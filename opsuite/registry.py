"""A registry that refuses duplicates and names what it knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from opsuite.exits import OpsuiteError


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Objects by name, in the order of their registration."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._items: dict[str, T] = {}

    def register(self, item: T) -> T:
        """Adds `item` and returns it. Raises ValueError when the name is taken."""
        if item.name in self._items:
            raise ValueError(f"{self._kind} {item.name!r} is registered twice")
        self._items[item.name] = item
        return item

    def get(self, name: str) -> T:
        """The item called `name`. Raises OpsuiteError, with the names that are near or known."""
        if name not in self._items:
            raise OpsuiteError(unknown(self._kind, name, self._items))
        return self._items[name]

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def names(self) -> list[str]:
        return list(self._items)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not known: the nearest ones, else all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"unknown {kind} {name!r}; did you mean {' or '.join(map(repr, near))}?"
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"unknown {kind} {name!r}; known: {shown}"
