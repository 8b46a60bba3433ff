"""The frame of the command line: exit codes, where text goes, what is imported."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

import softgold.readers
from softgold import __version__
from softgold.cli.app import COMMANDS, load_command
from softgold.cli.common import DuplicateChoice
from softgold.readers.repeats import DUPLICATE_RULES

SOFTGOLD = [sys.executable, "-m", "softgold"]
VOTES = "item,annotator,vote\nx,a,1\nx,b,1\ny,a,0\n"


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def test_version(cli: Callable[..., Any]) -> None:
    answer = cli("--version")
    assert (answer.code, answer.out, answer.err) == (0, f"softgold {__version__}\n", "")


def test_help_lists_every_command(cli: Callable[..., Any]) -> None:
    answer = cli("--help")
    assert answer.code == 0
    assert answer.err == ""
    listed = [
        line.split()[0]
        for line in answer.out.split("Commands:")[1].splitlines()
        if line.startswith("  ") and line[2] != " "
    ]
    assert listed == list(COMMANDS)


def test_no_command_is_bad_usage(cli: Callable[..., Any]) -> None:
    answer = cli()
    assert (answer.code, answer.out) == (2, "")
    assert "Usage: softgold" in answer.err


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_can_be_loaded_and_their_summary_is_true(name: str, cli: Callable[..., Any]) -> None:
    command = load_command(name)
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name]
    assert cli(name, "--help").code == 0


def test_every_command_module_is_listed() -> None:
    folder = Path(import_module("softgold.cli").__file__ or "").parent
    modules = {path.stem for path in folder.glob("*.py") if "def register(" in path.read_text(encoding="utf-8")}
    assert modules == {name.replace("-", "_") for name in COMMANDS}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describ"], "No such command 'describ'. Did you mean 'describe'? (see 'softgold --help')"),
        (["describe"], "Missing argument 'VOTES' (see 'softgold describe --help')"),
        (["describe", "x", "--nope"], "No such option: --nope"),
        (["describe", "x", "--duplicates", "some"], "'some' is not one of 'error', 'first', 'last', 'mean', 'all'"),
        (["--nope"], "No such option: --nope"),
    ],
)
def test_bad_usage_is_one_sentence(cli: Callable[..., Any], arguments: list[str], said: str) -> None:
    answer = cli(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_bad_input_is_one_sentence(cli: Callable[..., Any], tmp_path: Path) -> None:
    answer = cli("describe", tmp_path / "no.csv")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"error: cannot read '{tmp_path}/no.csv': No such file or directory\n"


def test_a_fault_of_ours_is_exit_1(cli: Callable[..., Any], votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(softgold.readers, "read_study", broken)
    answer = cli("describe", votes)
    assert answer.code == 1
    assert answer.err.startswith(
        "error: this is a fault of softgold, not of your input: ZeroDivisionError: division by zero"
    )
    assert "Traceback" not in answer.err
    monkeypatch.setenv("SOFTGOLD_DEBUG", "1")
    assert "Traceback" in cli("describe", votes).err


def test_warnings_are_sentences_on_standard_error_once_each(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES + "x,a,1\nz,a,\n")
    answer = cli("baseline", path)
    warnings = [line for line in answer.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == len(set(warnings)) == 2
    assert ".py" not in answer.err
    assert "warning" not in answer.out


def test_quiet_prints_data_only(cli: Callable[..., Any], votes: Path) -> None:
    loud, quiet = cli("baseline", votes), cli("baseline", votes, "--quiet")
    assert loud.err
    assert quiet.err == ""
    assert loud.out == quiet.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_at_work(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = [*SOFTGOLD, "baseline", "-", "-o", str(tmp_path / "out.csv")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        # More than a pipe holds: when it is all written, the command is at work, reading.
        process.stdin.write(b"item,annotator,vote\n" * 50_000)
        process.stdin.flush()
        process.send_signal(number)
        assert process.wait(timeout=30) == code
        assert b"Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,vote\n" + "".join(f"item{n},a,1\n" for n in range(50_000)))
    with subprocess.Popen(
        [*SOFTGOLD, "baseline", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == b""


def test_a_full_standard_output_is_a_sentence(votes: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*SOFTGOLD, "baseline", str(votes)], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write to standard output: No space left on device\n"


def test_the_rules_for_duplicates_are_those_of_the_reader() -> None:
    assert get_args(DuplicateChoice) == DUPLICATE_RULES


def test_standard_input_and_output(votes: Path) -> None:
    done = subprocess.run([*SOFTGOLD, "baseline", "-", "-q"], input=VOTES.encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.startswith(b"item,p,expected_vote,")
    assert done.stdout.count(b"\n") == 3


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from softgold.cli import main; main(['--help']); "
        "print(sorted({'numpy', 'pandas', 'torch', 'matplotlib', 'pyarrow', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy(name: str) -> None:
    script = (
        f"import sys; from softgold.cli import main; main(['{name}', '--help']); "
        "print(sorted({'numpy', 'pandas', 'torch', 'matplotlib', 'pyarrow', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
