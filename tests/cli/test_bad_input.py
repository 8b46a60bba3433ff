"""Bad input: one clear sentence, exit 2, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

H = b"item,annotator,vote\n"

BAD: dict[str, tuple[str, bytes, str]] = {
    "empty file": ("v.csv", b"", "is empty"),
    "header only": ("v.csv", H, "has a header and no rows"),
    "missing column": ("v.csv", b"item,vote\nx,1\n", "has no annotator column"),
    "two candidate columns": ("v.csv", b"item,user,worker,vote\nx,a,b,1\n", "'user', 'worker'"),
    "unknown vote": ("v.csv", H + b"x,a,1\ny,a,perhaps\n", "row 2 (line 3), column 'vote'"),
    "missing id": ("v.csv", H + b",a,1\n", "row 1 (line 2), column 'item': the id is blank"),
    "conflicting duplicates": ("v.csv", H + b"x,a,1\nx,a,0\n", "1 in row 1 (line 2) but 0 in row 2 (line 3)"),
    "not what the suffix says": ("v.parquet", H + b"x,a,1\n", "cannot be read as Parquet"),
    "binary": ("v.csv", bytes(range(256)), "is not delimited text"),
    "not UTF-8": ("v.csv", H + b"caf\xe9,a,1\n", "line 2"),
    "row too long": ("v.csv", H + b"x,a,1,2\n", "row 1 (line 2): the row has 4 cells and the header 3"),
    "million-character id": ("v.csv", H + b"x" * 1_000_000 + b",a,1\n", "the id has more than 10000 characters"),
    "only abstentions": ("v.csv", H + b"x,a,\n", "has no votes"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables(cli: Callable[..., Any], tmp_path: Path, kind: str) -> None:
    name, data, said = BAD[kind]
    (tmp_path / name).write_bytes(data)
    for command in (["baseline", tmp_path / name, "-o", tmp_path / "out.csv"], ["describe", tmp_path / name]):
        answer = cli(*command)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("error: ")
        assert said in answer.err
        assert answer.err.count("\n") == 1
        assert len(answer.err) < 1000
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_directory_instead_of_a_file(cli: Callable[..., Any], tmp_path: Path) -> None:
    answer = cli("baseline", tmp_path, "-o", tmp_path / "out.csv")
    assert (answer.code, answer.err) == (2, f"error: cannot read '{tmp_path}': Is a directory\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "said"),
    [("no/such/out.csv", "does not exist"), (".", "it is a folder"), ("votes.csv", "exists already; give --force")],
)
def test_an_unwritable_output_is_refused_before_reading(
    cli: Callable[..., Any], tmp_path: Path, target: str, said: str
) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_bytes(H + b"x,a,nonsense\n")
    answer = cli("baseline", votes, "-o", tmp_path / target)
    assert answer.code == 2
    assert said in answer.err
    assert "nonsense" not in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_odd_ids_round_trip_through_the_command_line(cli: Callable[..., Any], tmp_path: Path) -> None:
    ids = [
        "007",
        "7",
        "1",
        "1.0",
        '=HYPERLINK("http://x","y")',
        "@SUM(1)",
        "two\nlines",
        "a\rb",
        "NA",
        "ünï",
        "\ufeffx",
    ]
    votes, first, second = (tmp_path / name for name in ("votes.csv", "first.csv", "second.csv"))
    pd.DataFrame({"item": ids, "annotator": "a", "vote": 1}).to_csv(votes, index=False, quoting=1)
    assert cli("baseline", votes, "-o", first).code == 0
    again = pd.read_csv(first, dtype="str", keep_default_na=False)
    assert again["item"].tolist() == ids
    again.assign(annotator="b", vote="yes")[["item", "annotator", "vote"]].to_csv(votes, index=False, quoting=1)
    assert cli("baseline", votes, "-o", second).code == 0
    assert pd.read_csv(second, dtype="str", keep_default_na=False)["item"].tolist() == ids
