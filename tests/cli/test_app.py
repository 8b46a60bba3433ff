"""The frame of the command line: exit codes, where text goes, what is imported."""

from __future__ import annotations

import json
import os
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
    modules = {
        path.stem.removesuffix("_")
        for path in folder.glob("*.py")
        if hasattr(import_module(f"softgold.cli.{path.stem}"), "command")
    }
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("state", ["closed", "full"])
def test_a_run_that_was_written_is_not_reported_as_failed(votes: Path, tmp_path: Path, stream: str, state: str) -> None:
    number = {"stdout": 1, "stderr": 2}[stream]
    redirection = f"{number}>&-" if state == "closed" else f"{number}>/dev/full"
    words = [*SOFTGOLD, "fit", str(votes), "-o", str(tmp_path / "run"), "--json", "--model", "mean"]
    done = subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *words], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "run.json").is_file()
    if stream == "stdout":
        assert b"the files were written" in done.stderr
    else:
        assert done.stdout.startswith(b"{")


@pytest.mark.slow
def test_a_closed_standard_output_is_an_error_when_the_answer_is_lost(votes: Path) -> None:
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *SOFTGOLD, "baseline", str(votes)], capture_output=True)
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write to standard output: it is closed\n"


@pytest.mark.slow
def test_all_streams_closed(votes: Path, tmp_path: Path) -> None:
    words = [*SOFTGOLD, "baseline", str(votes), "-o", str(tmp_path / "out.csv")]
    assert subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words]).returncode == 0
    assert (tmp_path / "out.csv").read_text().count("\n") == 3


@pytest.mark.parametrize("text", ["--version", "--help"])
def test_help_to_a_full_output_is_a_sentence(text: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*SOFTGOLD, text], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 7.45 GiB"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_too_little_memory_is_a_sentence(
    cli: Callable[..., Any], votes: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def hungry(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(softgold.readers, "read_study", hungry)
    answer = cli("describe", votes)
    assert answer.code == 2
    assert answer.err.startswith("error: there is not enough memory for this (")


def test_names_cannot_steer_the_terminal(cli: Callable[..., Any], tmp_path: Path) -> None:
    answer = cli("describe", tmp_path / "\x1b[2J\x07\r\u202e\x9b31m.csv")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert not set(answer.err) & set("\x1b\x07\r\u202e\x9b")
    votes = tmp_path / "votes.csv"
    votes.write_text("task,item,annotator,vote\n\x1b[2J\x07\u202e\x9b31m,i,a,1\nplain,i,a,1\n")
    answer = cli("describe", votes)
    assert answer.code == 0
    assert not set(answer.out + answer.err) & set("\x1b\x07\u202e\x9b")


def test_long_messages_are_shortened(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"item,annotator,vote\n{'x' * 9000},a,1\n{'x' * 9000},a,0\n")
    answer = cli("describe", path)
    assert answer.code == 2
    assert len(answer.err) <= 1001
    assert "--duplicates" in answer.err  # what to do is at the end
    answer = cli("simulate", "--preset", "x" * 9000)  # the parser of options shows values whole
    assert answer.code == 2
    assert "characters in all" in answer.err
    assert max(map(len, answer.err.splitlines())) <= 1000


@pytest.mark.slow
def test_file_names_that_are_not_utf_8(cli: Callable[..., Any], tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/votes-\xff.csv"))
    odd.write_text(VOTES)
    run = os.fsencode(tmp_path) + b"/run-\xfe"
    done = subprocess.run([*SOFTGOLD, "fit", odd, "-o", run, "--model", "mean", "--json"], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert Path(os.fsdecode(run), "run.json").is_file()
    json.loads(done.stdout)
    assert cli("report", os.fsdecode(run)).code == 0


@pytest.mark.slow
def test_ctrl_c_during_the_imports_prints_no_traceback(votes: Path) -> None:
    # A handler that is called in the middle of an import: Ctrl-C at the worst of times, at the same place each time.
    script = """
import builtins, signal, sys
original, name = builtins.__import__, sys.argv.pop(1)
def importing(module, *rest):
    if module == name:
        builtins.__import__ = original
        signal.raise_signal(signal.SIGINT)
    return original(module, *rest)
from softgold.cli import main
builtins.__import__ = importing
sys.exit(main())
"""
    for name in ("typer", "softgold.cli.common", "numpy", "pandas", "softgold.readers"):
        done = subprocess.run([sys.executable, "-c", script, name, "describe", str(votes)], capture_output=True)
        assert done.returncode == 130, (name, done.stderr)
        assert done.stderr.startswith(b"interrupted")
        assert done.stderr.count(b"\n") == 1


def test_ctrl_c_that_falls_into_a_callback_still_interrupts() -> None:
    script = """
import signal, sys, time
from softgold.cli import app
class Loud:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def work(*_, **__):
    Loud()
    time.sleep(30)
app.build_app = lambda: work
sys.exit(app.main([]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=20)
    assert done.returncode == 130
    assert done.stderr == b"interrupted; nothing half-written was left behind\n"


@pytest.mark.slow
def test_a_full_standard_output_is_a_sentence(votes: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*SOFTGOLD, "baseline", str(votes)], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write to standard output: No space left on device\n"


def test_the_rules_for_duplicates_are_those_of_the_reader() -> None:
    assert get_args(DuplicateChoice) == DUPLICATE_RULES


@pytest.mark.slow
def test_standard_input_and_output(votes: Path) -> None:
    done = subprocess.run([*SOFTGOLD, "baseline", "-", "-q"], input=VOTES.encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.startswith(b"item,p,expected_vote,")
    assert done.stdout.count(b"\n") == 3


@pytest.fixture(scope="module")
def imported_by_help() -> dict[str, list[str]]:
    """Heavy packages that the help of each command imports, in one process; "" is the help of softgold itself."""
    script = """
import json, sys
from softgold.cli import main
found, heavy = {}, {"numpy", "pandas", "torch", "matplotlib", "pyarrow", "scipy", "sklearn"}
for name in ("", *sys.argv[1:]):
    before = set(sys.modules)
    assert main([*name.split(), "--help"]) == 0
    found[name] = sorted(heavy & (set(sys.modules) - before))
print("\\n" + json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", script, *COMMANDS], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_help_of_a_command_imports_nothing_heavy(name: str, imported_by_help: dict[str, list[str]]) -> None:
    assert imported_by_help[name] == []
