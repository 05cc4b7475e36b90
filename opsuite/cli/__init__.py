"""The command line: one file a command."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated

import typer
from rich.console import Console

import opsuite
from opsuite.exits import Exit, OpsuiteError

app = typer.Typer(
    name="opsuite",
    epilog="Start with: opsuite list, opsuite doctor, opsuite run -k conv1d --flow xnnpack",
    help="Operator suites for ExecuTorch and Core ML: every case ends, each with a verdict.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show opsuite's version.")] = False,
) -> int:
    if version:
        print(opsuite.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())
    return int(Exit.OK)


def main() -> None:
    """Entry point: runs a command, and turns errors that a user can act on into one line and an exit code."""
    from opsuite.cli import doctor, list, profile, run, verify_quantizer  # noqa: F401  (importing a command registers it)

    for command in app.registered_commands:
        command.help = _help(command.callback)
    try:
        sys.exit(app(standalone_mode=False))
    except OpsuiteError as error:
        _fail(str(error), error.code)
    except typer.Abort:
        _fail("interrupted", Exit.INCOMPLETE)
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            # click's own errors: an unknown option, a value out of range.
            _fail(error.format_message(), Exit.USAGE)
        raise


def _help(command: object) -> str:
    """A command's docstring with its paragraphs on one line each: typer would keep the line ends."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.split()) for text in paragraphs)


def _fail(message: str, code: Exit) -> None:
    Console(stderr=True, soft_wrap=True).print(f"opsuite: {message}", markup=False, highlight=False)
    sys.exit(int(code))
