"""`-k` expressions: pytest's own, over words of a case's ID and tags."""

from __future__ import annotations

from collections.abc import Callable

from opsuite.exits import OpsuiteError


def compile_selection(expression: str) -> Callable[[str], bool]:
    """A predicate over case IDs for a `-k` expression such as `conv2d and not (stride or dilation)`.

    Names match as parts of the ID, without regard to case. Raises OpsuiteError for a malformed expression.
    """
    if not expression.strip():
        return lambda case_id: True
    from _pytest.mark.expression import Expression

    try:
        compiled = Expression.compile(expression)
    # SyntaxError in pytest 9; an error class of its own before.
    except Exception as error:
        raise OpsuiteError(f"-k {expression!r} is not an expression: {error}") from error

    def matches(case_id: str) -> bool:
        lowered = case_id.lower()

        def contains(name: str, /, **parameters: object) -> bool:
            if parameters:
                raise OpsuiteError(f"-k {expression!r}: {name!r} takes no parameters")
            return name.lower() in lowered

        return bool(compiled.evaluate(contains))

    return matches
