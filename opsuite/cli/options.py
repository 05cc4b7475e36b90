"""Arguments and options that several commands take."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

SuiteArgument = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time on Python 3.10)
    typer.Argument(
        metavar="[SUITE]...", help="Suites, cases by ID, or Python files. Default: operators.", show_default=False
    ),
]


class Runtime(str, Enum):
    """What may execute a lowered program."""

    auto = "auto"
    native = "native"
    none = "none"
