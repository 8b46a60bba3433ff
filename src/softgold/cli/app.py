"""The command line: its commands, and how errors and warnings are shown.

Exit codes: 0 done, 1 a fault of softgold, 2 bad usage or bad input, 130 interrupted, 141 the output was closed by its
reader, 143 terminated.
"""

from __future__ import annotations

import errno
import os
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
from softgold.cli.common import print_data, say
from softgold.cli.signals import interruptible
from softgold.cli.streams import StandardOutputError, discard, steady_streams
from softgold.cli.text import one_line
from softgold.errors import SoftgoldError, SoftgoldWarning, is_shortage

# The commands in the order of the help text, each with its one line there. The command sample-experts is in the module
# sample_experts of this package, and so on; only the module of the command that is run is imported. A line is the first
# of the command's docstring, which a test compares.
COMMANDS = {
    "demo": "Run the whole path on the sample data.",
    "fit": "Fit a model to votes and write a run directory.",
    "predict": "Score new votes with the abilities of a fitted run.",
    "baseline": "Compute soft labels by vote share or majority.",
    "next": "Say which votes to buy next, and when to stop.",
    "update": "Add votes to a run and fit it again from where it stood.",
    "sample-experts": "Draw items for expert review.",
    "calibrate": "Calibrate labels with the answers of experts.",
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
STOPPED = {130: "interrupted", 143: "terminated"}
READER_LEFT = 141
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with steady_streams(), _plain_warnings(), interruptible() as interrupted:
        try:
            before = _written()
            with _output_errors():
                code = build_app()(args=arguments, prog_name="softgold", standalone_mode=False)
                sys.stdout.flush()
            return _finished(code)
        except (StandardOutputError, BrokenPipeError) as error:
            return _lost_answer(error, written=_written() > before)
        except SystemExit as stop:
            if isinstance(stop.__context__, BrokenPipeError):  # Typer turns it into an exit of its own
                return _lost_answer(stop.__context__, written=_written() > before)
            return _finished(stop.code if isinstance(stop.code, int | None) else 1)
        except KeyboardInterrupt:
            return _finished(130)
        except Exception as error:
            # Ctrl-C while a library is imported may come out of it as any error.
            return _finished(130) if interrupted() else _failed(error)


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
    app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    return app


def load_command(name: str) -> Any:
    """Import the module of a command and return its `command`, a function or a group."""
    module = name.replace("-", "_")
    command = import_module(f"softgold.cli.{module}_" if iskeyword(module) else f"softgold.cli.{module}").command
    if isinstance(command, typer.Typer):  # a group of commands
        return typer.main.get_command(command)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(command)
    return typer.main.get_command(app)


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Crowd votes to soft labels with honest uncertainty, and models judged against them."""
    if version:
        print_data(f"softgold {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(2)


def _finished(result: Any) -> int:
    code = result if isinstance(result, int) else 0
    if code in STOPPED:
        say(f"{STOPPED[code]}; nothing half-written was left behind")
    return code


def _failed(error: Exception) -> int:
    """Say what went wrong in one sentence, and return the exit code."""
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    sentence, code = _sentence(error)
    say(one_line(f"error: {sentence}"))
    return code


def _sentence(error: Exception) -> tuple[str, int]:
    if isinstance(error, SoftgoldError):
        return str(error), 2
    if isinstance(error, _usage_error()):
        return _usage_sentence(error), error.exit_code
    if is_shortage(error):
        return f"there is not enough memory for this ({str(error) or 'an allocation failed'})", 2
    if isinstance(error, UnicodeEncodeError):  # texts of softgold itself can always be encoded
        text = error.object[max(0, error.start - 20) : error.end + 20]
        return f"the text {text!r} is not valid Unicode (a lone surrogate or a name that is not UTF-8)", 2
    return (
        f"this is a fault of softgold, not of your input: {type(error).__name__}: {error}; "
        f"set {DEBUG_VARIABLE}=1 for the traceback, and please report it"
    ), 1


def _usage_error() -> Any:
    """Return the exception of bad usage: Typer's own, or that of Click in versions of Typer that are built on it."""
    return getattr(typer, "TyperException", None) or import_module("click").ClickException


def _usage_sentence(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return " ".join(error.format_message().split()).rstrip(".") + hint


@contextmanager
def _output_errors() -> Iterator[None]:
    """Name standard output in errors of printing help, which Typer leaves as errors of the system."""
    try:
        yield
    except OSError as error:
        if isinstance(error, SoftgoldError) or error.filename is not None or error.errno not in UNWRITABLE:
            raise
        raise StandardOutputError(f"cannot write to standard output: {error.strerror}") from error


def _lost_answer(error: OSError, *, written: bool) -> int:
    """Return the exit code if standard output failed; files that were written before are complete."""
    discard(sys.stdout)
    left = isinstance(error, BrokenPipeError)
    if written:
        say("warning: the files were written, but not all of the answer could be printed", quiet=left)
        return 0
    if left:
        return READER_LEFT
    say(one_line(f"error: {error}"))
    return 2


def _written() -> int:
    """Return how many files and folders this process has written."""
    module = sys.modules.get("softgold.output.atomic")
    return 0 if module is None else module.count_written()


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print each warning of softgold once, as a sentence without file and line; leave all others as they are."""
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
                say(one_line(f"warning: {message}"))

        warnings.showwarning = show
        warnings.simplefilter("always", SoftgoldWarning)
        yield
