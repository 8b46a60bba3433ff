"""The options for reading votes: the same in every command that takes a vote table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from softgold.cli.app import load_command
from softgold.cli.reading import ReadingOptions, with_reading_options

NAMES = [field.name for field in fields(ReadingOptions)]


@pytest.mark.parametrize("command", ["agreement", "baseline", "describe", "fit", "predict"])
def test_every_command_that_reads_votes_has_the_options(command: str) -> None:
    assert set(NAMES) <= {parameter.name for parameter in load_command(command).params}


def test_the_command_gets_them_as_one_value() -> None:
    seen: dict[str, Any] = {}

    def command(votes: str, *, reading: ReadingOptions, quiet: bool = False) -> None:
        seen.update(votes=votes, reading=reading, quiet=quiet)

    given = dict.fromkeys(NAMES, "x")
    with_reading_options(command)(votes="v.csv", quiet=True, **given)
    assert seen == {"votes": "v.csv", "reading": ReadingOptions(**given), "quiet": True}


def test_predict_reads_as_fit_does(cli: Callable[..., Any], tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text(
        "photo,who,answer\n" + "".join(f"p{n},w{w},{'cat' if n % 2 else 'dog'}\n" for n in range(6) for w in "ab")
    )
    options = ["--item-col", "photo", "--annotator-col", "who", "--vote-col", "answer", "--positive", "cat", "-q"]
    assert cli("fit", votes, "-o", tmp_path / "run", "--model", "mean", *options).code == 0
    answer = cli("predict", tmp_path / "run", votes, *options)
    assert answer.code == 0, answer.err
    assert answer.out == (tmp_path / "run" / "soft_labels.csv").read_text()
