"""Bad text files get one clear sentence; odd but lawful ones are data."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from softgold.errors import InputError, SoftgoldWarning
from softgold.readers import read_scores, read_votes

HEADER = b"item,annotator,vote\n"


def write(folder: Path, data: bytes, name: str = "votes.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(folder: Path, data: bytes, name: str = "votes.csv") -> str:
    """Return the error's text, after the path."""
    path = write(folder, data, name)
    with pytest.raises(InputError) as caught:
        read_votes(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 1000
    return message.replace(str(path), "FILE")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"  \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_empty_file(tmp_path: Path, data: bytes) -> None:
    assert refusal(tmp_path, data) == "FILE is empty; it needs a header and at least one row"


@pytest.mark.parametrize("data", [HEADER, HEADER.strip(), HEADER + b"\n\n", b"\n" + HEADER, b"\xef\xbb\xbf" + HEADER])
def test_header_only(tmp_path: Path, data: bytes) -> None:
    assert refusal(tmp_path, data) == "FILE has a header and no rows"


def test_missing_column(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"item,annotator,colour\nx,a,1\n") == (
        "FILE has no vote column: looked for vote, label, response, value, answer among 'item', 'annotator', 'colour'; "
        "name it with --vote-col (vote=)"
    )


@pytest.mark.parametrize("mark", [b",", b";", b"\t", b"|"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.txt", "votes"])
def test_the_first_line_tells_the_separator(tmp_path: Path, mark: bytes, name: str) -> None:
    data = (
        mark.join([b"item", b'"annotator"', b"vote"])
        + b"\n"
        + mark.join([b"x,y", b"a;b", b"1"]).replace(b"x,y", b'"x,y"').replace(b"a;b", b'"a;b"')
    )
    votes = read_votes(write(tmp_path, data, name))
    assert (votes.item_ids.tolist(), votes.annotator_ids.tolist(), votes.votes.tolist()) == (["x,y"], ["a;b"], [1])


def test_a_decimal_comma(tmp_path: Path) -> None:
    path = write(tmp_path, b"item;net;tree\nx;0,25;1\ny;1e-3;-0,5\n", "scores.csv")
    assert read_scores(path).values.tolist() == [[0.25, 1.0], [0.001, -0.5]]
    votes = write(tmp_path, b"item;annotator;vote\nx;a;1,0\ny;a;0,0\n")
    assert read_votes(votes).votes.tolist() == [1, 0]
    with pytest.raises(InputError, match=r"row 1 .*: a score must be a finite number, got '1\.234,5'"):
        read_scores(write(tmp_path, b"item;net\nx;1.234,5\n", "scores.csv"))


@pytest.mark.parametrize(
    ("header", "named"),
    [
        (b"item,image_id,annotator,vote", "the item: 'item', 'image_id'"),
        (b"task,image,annotator,vote,unit", "the item: 'task', 'image', 'unit'"),
        (b"item,Worker,user,vote", "the annotator: 'Worker', 'user'"),
        (b"item,annotator,vote,vote", "the vote: 'vote', 'vote'"),
    ],
)
def test_two_candidate_columns(tmp_path: Path, header: bytes, named: str) -> None:
    message = refusal(tmp_path, header + b"\nx,a,1,1" + b",1" * (header.count(b",") - 3) + b"\n")
    assert message.startswith(f"FILE has several columns that could be {named}; choose one with --")


def test_a_column_can_be_chosen_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, b"item,task,annotator,vote\nx,t1,a,1\nx,t2,a,0\n")
    assert read_votes(path, item="task").item_ids.tolist() == ["t1", "t2"]
    with pytest.raises(InputError, match="has no column 'unit'; it has 'item', 'task', 'annotator', 'vote'"):
        read_votes(path, item="unit")


@pytest.mark.parametrize("value", [b"2", b"-1", b"maybe", b"0.5", b"none", b"yep", "１".encode()])
def test_unknown_vote_names_row_and_value(tmp_path: Path, value: bytes) -> None:
    assert refusal(tmp_path, HEADER + b"x,a,1\ny,a," + value + b"\n") == (
        "FILE, row 2 (line 3), column 'vote': a vote must be 0 or 1, true or false, yes or no, positive or negative, "
        f"present or absent, or empty; got {value.decode()!r}; if one value counts as 1 and the others as 0, name it "
        f"with --positive (positive=): the values are '1', {value.decode()!r}"
    )


@pytest.mark.parametrize(
    ("yes", "no"), [("Y", "n"), ("T", "f"), ("Present", "ABSENT"), ("accept", "reject"), ("yes", "NO"), ("1.0", "0")]
)
def test_pairs_of_spellings(tmp_path: Path, yes: str, no: str) -> None:
    votes = read_votes(write(tmp_path, HEADER + f"x,a,{yes}\ny,a, {no} \n".encode()))
    assert votes.votes.tolist() == [1, 0]


def test_any_value_can_count_as_one(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + b"x,a,Cat\ny,a,dog\nz,a,\nw,a,bird\nv,a,cat\n")
    with pytest.warns(SoftgoldWarning, match="1 item has no vote"):
        votes = read_votes(path, positive="cat")
    assert votes.votes.tolist() == [0, 0, 0, 1]
    with pytest.warns(SoftgoldWarning):
        assert read_votes(path, positive="DOG").votes.tolist() == [0, 1, 0, 0]
    with pytest.raises(InputError, match=r"no vote is 'fish'.*the values are 'Cat', 'dog', 'bird', 'cat'"):
        read_votes(path, positive="fish")


def test_a_task_column_beside_the_items_tells_the_question(tmp_path: Path) -> None:
    path = write(tmp_path, b"task,item,worker,vote\nq1,x,a,1\nq2,x,a,0\nq1,y,b,no\nq2,y,b,bad\n")
    votes = read_votes(path, question="q1")
    assert (votes.item_ids.tolist(), votes.votes.tolist()) == (["x", "y"], [1, 0])
    with pytest.raises(InputError, match="has votes on 2 tasks: 'q1', 'q2'; choose one with --question"):
        read_votes(path)
    with pytest.raises(InputError, match=r"row 4 \(line 5\), column 'vote'"):
        read_votes(path, question="q2")
    with pytest.raises(InputError, match="has no task 'q3'"):
        read_votes(path, question="q3")
    with pytest.raises(InputError, match="has no column 'task'"):
        read_votes(write(tmp_path, HEADER + b"x,a,1\n"), question="q1")


def test_a_wide_table_gets_a_hint(tmp_path: Path) -> None:
    assert "if it has one column per rater, give --wide" in refusal(tmp_path, b"item,ann,bob,eve\nx,1,0,\ny,0,yes,1\n")
    assert "--wide" not in refusal(tmp_path, b"item,age,city\nx,12,Rome\n")


def test_the_line_is_that_of_an_editor(tmp_path: Path) -> None:
    data = b"\r\n" + HEADER + b'\n"two\nlines",a,1\n\n\ny,a,2\n'
    assert "row 2 (line 8), column 'vote'" in refusal(tmp_path, data)


@pytest.mark.parametrize(("row", "column"), [(b",a,1", "item"), (b"x,,1", "annotator"), (b'"  ",a,1', "item")])
def test_blank_ids(tmp_path: Path, row: bytes, column: str) -> None:
    assert refusal(tmp_path, HEADER + b"x,b,1\n" + row + b"\n") == (
        f"FILE, row 2 (line 3), column {column!r}: the id is blank"
    )


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        read_votes(tmp_path / "votes.csv")
    (tmp_path / "votes.parquet").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        read_votes(tmp_path / "votes.parquet")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_votes(tmp_path / "votes.csv")
    with pytest.raises(InputError, match="No such file"):
        read_votes(tmp_path / "votes.parquet")
    with pytest.raises(InputError, match="cannot read"):
        read_votes("nul\0byte.csv")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("votes.csv", b"PAR1....PAR1", "FILE cannot be read as Parquet"),
        ("votes.csv", gzip.compress(HEADER, mtime=0), "FILE has a header and no rows"),
        ("votes.tsv", b"PK\x03\x04....", "FILE is not a whole zip archive"),
        ("votes.csv", "item,annotator".encode("utf-16"), "it looks like UTF-16 text; save it as UTF-8"),
        ("votes.csv", HEADER + b"x,a\0,1\n", "FILE is not delimited text: byte 23 is NUL"),
        ("votes.parquet", HEADER, "FILE cannot be read as Parquet"),
        ("votes.parquet", b"", "FILE cannot be read as Parquet"),
        ("votes.csv.gz", HEADER, "FILE has a header and no rows"),
        ("votes.csv.gz", gzip.compress(HEADER + b"x,a,1\n", mtime=0)[:-9], "cannot read FILE: Compressed file ended"),
        ("votes.xlsx", b"", "FILE is empty"),
        ("votes", HEADER, "FILE has a header and no rows"),
        ("votes.gz", gzip.compress(HEADER, mtime=0), "FILE has a header and no rows"),
    ],
)
def test_a_file_that_is_not_what_its_suffix_says(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    assert said in refusal(tmp_path, data, name)


def test_not_utf8(tmp_path: Path) -> None:
    latin = "café".encode("latin-1")
    assert refusal(tmp_path, HEADER + b"x,a,1\n" + latin + b",a,1\n") == (
        "FILE, line 3: byte 0xE9 is not UTF-8 text; save the file as UTF-8"
    )
    assert "line 1" in refusal(tmp_path, latin + b",item,annotator,vote\nx,a,b,1\n")


@pytest.mark.parametrize(("row", "count"), [(b"x,b,1,4", 4), (b"x,b", 2), (b"x", 1)])
def test_a_row_of_another_length(tmp_path: Path, row: bytes, count: int) -> None:
    assert refusal(tmp_path, HEADER + b"x,a,1\n\n" + row + b"\n") == (
        f"FILE, row 2 (line 4): the row has {count} cells and the header 3: {row.decode()!r}"
    )


def test_a_quote_left_open(tmp_path: Path) -> None:
    assert "the row has" in refusal(tmp_path, HEADER + b'"x,a,1\n' + b"y,a,1\n" * 50)


def test_a_million_character_id(tmp_path: Path) -> None:
    assert refusal(tmp_path, HEADER + b"x" * 1_000_000 + b",a,1\n") == (
        "FILE, row 1, column 'item': the id has more than 10000 characters; is a quote left open?"
    )
    assert "is a quote left open?" in refusal(tmp_path, HEADER + b"x" * (1 << 25) + b",a,1\n")
    assert "the header cannot be read" in refusal(tmp_path, b"x" * 1_000_000 + b",item\n")


def test_an_id_of_ten_thousand_characters_is_data(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + b"x" * 10_000 + b",a,1\n")
    assert read_votes(path).item_ids.tolist() == ["x" * 10_000]


@pytest.mark.parametrize(
    "text",
    [
        "007",
        "1e5",
        "+1",
        "0x1F",
        "NaN",
        "NA",
        "null",
        "None",
        "TRUE",
        "=HYPERLINK(1)",
        "-",
        " padded ",
        "ﬁ",
        "😀",
        "\u00e9",
        "e\u0301",
    ],
)
def test_ids_stay_as_written(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, HEADER + f"{text},{text},1\n".encode())
    votes = read_votes(path)
    assert votes.item_ids.tolist() == [text]
    assert votes.annotator_ids.tolist() == [text]


def test_numbers_that_are_equal_are_different_ids(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + b"1,a,1\n1.0,a,1\n01,a,0\n")
    assert read_votes(path).item_ids.tolist() == ["1", "1.0", "01"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_byte_order_mark(tmp_path: Path, mark: bytes, end: bytes, last: bool) -> None:
    data = mark + end.join([b"item,annotator,vote", b"x,a,1", b"y,b,0"]) + (end if last else b"")
    expected = pd.DataFrame({"item": ["x", "y"], "annotator": ["a", "b"], "vote": [1, 0]}).astype({"vote": "int8"})
    assert read_votes(write(tmp_path, data)).to_frame().equals(expected)


def test_quoted_newlines_commas_and_quotes(tmp_path: Path) -> None:
    data = HEADER + b'"two\nlines","a, b","1"\n"say ""hi""",c,0\n'
    votes = read_votes(write(tmp_path, data))
    assert votes.item_ids.tolist() == ["two\nlines", 'say "hi"']
    assert votes.annotator_ids.tolist() == ["a, b", "c"]


def test_quoted_newlines_across_blocks_of_the_parser(tmp_path: Path) -> None:
    rows = [f'"item\n{number}",a{number % 7},{number % 2}\n' for number in range(400_000)]
    votes = read_votes(write(tmp_path, HEADER + "".join(rows).encode()))
    assert votes.n_votes == 400_000
    assert votes.item_ids[-1] == "item\n399999"


@pytest.mark.parametrize(
    ("spelling", "vote"),
    [(text, 1) for text in ("1", "1.0", "true", "TRUE", "yes", "Yes", "positive", " 1 ")]
    + [(text, 0) for text in ("0", "0.0", "false", "False", "no", "NO", "Negative")],
)
def test_spellings_of_votes(tmp_path: Path, spelling: str, vote: int) -> None:
    assert read_votes(write(tmp_path, HEADER + f"x,a,{spelling}\n".encode())).votes.tolist() == [vote]


@pytest.mark.parametrize("spelling", ["", " ", '""', "NA", "NaN", "nan", "null", "<NA>"])
def test_spellings_of_abstentions(tmp_path: Path, spelling: str) -> None:
    votes = read_votes(write(tmp_path, HEADER + f"x,a,1\nx,b,{spelling}\n".encode()))
    assert (votes.n_votes, votes.n_abstentions, votes.abstained_annotators) == (1, 1, ("b",))


@pytest.mark.parametrize("item", ["item", "task", "example", "image", "unit", "ITEM", " Item "])
@pytest.mark.parametrize("annotator", ["annotator", "worker", "rater", "user", "subject"])
@pytest.mark.parametrize("vote", ["vote", "label", "response", "value", "answer"])
def test_column_aliases(tmp_path: Path, item: str, annotator: str, vote: str) -> None:
    data = f"{vote},extra,{annotator},{item}\n1,z,ann,x\n".encode()
    votes = read_votes(write(tmp_path, data))
    assert votes.item_ids.tolist() == ["x"]
    assert votes.annotator_ids.tolist() == ["ann"]
