"""The frame of the command line: which commands there are, and what becomes of errors and warnings.

Exit codes: 0 done, 1 a fault of ours, 2 bad usage or bad input, 130 interrupted, 141 the reader of our output left.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any, TextIO

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from softgold import __version__
from softgold.cli.common import discard_output
from softgold.errors import SoftgoldError, SoftgoldWarning

__all__ = ["COMMANDS", "build_app", "load_command", "main"]

# The commands in the order of the help text, each with its one line there. The command sample-experts is in the module
# sample_experts of this package, and so on; only the module of the command that is run is imported. A line is the first
# of the command's docstring, which a test compares.
COMMANDS = {
    "demo": "Run the whole path on the sample data.",
    "fit": "Fit a model to votes and write a run directory.",
    "predict": "Score new votes with the abilities of a fitted run.",
    "baseline": "Compute soft labels by vote share or majority.",
    "sample-experts": "Draw items for expert review.",
    "calibrate": "Choose a threshold from expert labels.",
    "evaluate": "Judge models against hard labels and against soft ones.",
    "report": "Write one HTML page that shows what a run has found.",
    "agreement": "Measure agreement of raters: alpha and kappa.",
    "describe": "Describe a vote table and list problems found.",
    "import": "Read votes from the export of an annotation tool.",
    "simulate": "Simulate a study with a known truth.",
    "convergence": "Say how high a model can score where raters differ.",
    "duplicates": "Plan which pairs to ask about to find duplicates.",
    "uncertainty": "Judge the uncertainty of a segmentation model.",
}

DEBUG_VARIABLE = "SOFTGOLD_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with _plain_warnings(), _terminable():
        try:
            code = build_app()(args=arguments, prog_name="softgold", standalone_mode=False)
            sys.stdout.flush()
            return _finished(code)
        except SoftgoldError as error:
            return _fail(str(error), 2, error)
        except typer.TyperException as error:
            return _fail(_usage_sentence(error), error.exit_code, error)
        except KeyboardInterrupt:
            return _finished(130)
        except SystemExit as stop:
            return _stopped(stop)
        except Exception as error:
            return _fail(_fault_sentence(error), 1, error)


class LazyGroup(TyperGroup):
    """A group that knows names and summaries, and imports a command when it is run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=summary) for name, summary in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the real command in place of its entry in the help text."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name is not None else command, rest


def build_app() -> typer.Typer:
    """Return the application."""
    # Help drawn by Rich takes twice the time of all that `softgold --help` imports.
    app = typer.Typer(cls=LazyGroup, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    return app


def load_command(name: str) -> Any:
    """Import the module of a command and return the command that it registers."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(_nothing)
    module = name.replace("-", "_")
    import_module(f"softgold.cli.{module}_" if iskeyword(module) else f"softgold.cli.{module}").register(app)
    group = typer.main.get_command(app)
    return group.commands[name] if isinstance(group, TyperGroup) else group


def _nothing() -> None:
    """With a callback, an application is a group even if it has one command."""


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Crowd votes to soft labels with honest uncertainty, and models judged against them."""
    if version:
        typer.echo(f"softgold {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def _finished(result: Any) -> int:
    code = result if isinstance(result, int) else 0
    if code == 130:
        typer.echo("interrupted; nothing half-written was left behind", err=True)
    return code


def _fail(sentence: str, code: int, error: BaseException) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    typer.echo(f"error: {sentence}", err=True)
    return code


def _usage_sentence(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return " ".join(error.format_message().split()).rstrip(".") + hint


def _fault_sentence(error: Exception) -> str:
    return (
        f"this is a fault of softgold, not of your input: {type(error).__name__}: {error}; "
        f"set {DEBUG_VARIABLE}=1 for the traceback, and please report it"
    )


def _stopped(stop: SystemExit) -> int:
    # Typer turns the error that the reader of our output has left into an exit of its own.
    if isinstance(stop.__context__, BrokenPipeError):
        discard_output()
        return 141
    return stop.code if isinstance(stop.code, int) else 1


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print each warning of ours once, as a sentence without file and line; leave all others as they are."""
    seen: set[str] = set()
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, SoftgoldWarning):
                show_others(message, category, filename, lineno, file, line)
            elif str(message) not in seen:
                seen.add(str(message))
                typer.echo(f"warning: {message}", err=True)

        warnings.showwarning = show
        warnings.simplefilter("always", SoftgoldWarning)
        yield


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that temporary files are removed as they are on Ctrl-C."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    try:
        previous = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
