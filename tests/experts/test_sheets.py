"""Sheets: written with context, filled in by experts, and read back as spreadsheet programs leave them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, OutputError
from softgold.experts import read_answers
from softgold.experts.sheets import make_sheet, read_context, write_sheet

ITEMS = pd.Index(["007", "b", "c", "d"])
CONTEXT = pd.DataFrame(
    {"item": ["d", "c", "b", "007"], "image": ["4.png", "3.png", "2.png", "1.png"], "user": ["w", "w", "x", "x"]}
)


def filled(answers: list[str]) -> pd.DataFrame:
    return make_sheet(ITEMS, CONTEXT).assign(answer=answers)


def check(path: Path) -> None:
    panel = read_answers(path)
    assert panel.item_ids.tolist() == ["007", "b", "c", "d"]
    assert panel.answers.tolist() == [[1, 0, -1, -1]]
    assert panel.unsure.tolist() == [[False, False, True, False]]


def test_context_is_beside_the_items_in_the_order_of_the_sheet() -> None:
    sheet = make_sheet(ITEMS, CONTEXT)
    assert sheet.columns.tolist() == ["item", "image", "user", "answer"]
    assert sheet["image"].tolist() == ["1.png", "2.png", "3.png", "4.png"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_text_comes_back_whatever_the_program_made_of_it(
    tmp_path: Path, separator: str, encoding: str, line_end: str
) -> None:
    path = tmp_path / "ann.csv"
    text = filled(["Yes", " no ", "unsure", ""]).to_csv(index=False, sep=separator, lineterminator=line_end)
    path.write_bytes((text + f"{separator * 3}{line_end}").encode(encoding))
    check(path)


def test_quoted_text_with_line_ends_survives(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    sheet = filled(["yes", "no", "?", ""]).assign(text='she said "no"; then,\nleft')
    sheet.to_csv(path, index=False, sep=";")
    check(path)


def test_workbooks_come_back(tmp_path: Path) -> None:
    path = tmp_path / "ann.xlsx"
    write_sheet(make_sheet(ITEMS, CONTEXT.assign(text="=1+1")), path)
    book = openpyxl.load_workbook(path)
    page = book.active
    assert page.data_validations.dataValidation[0].formula1 == '"yes,no,unsure"'
    assert [cell.value for cell in page[2]] == ["007", "1.png", "x", "=1+1", None]
    assert page["D2"].data_type == "s"
    for row, answer in enumerate(["yes", "no", "unsure", None], start=2):
        page.cell(row, 5).value = answer
    page.append([None] * 5)
    book.save(path)
    check(path)


def test_a_workbook_is_the_same_whenever_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sheet(make_sheet(ITEMS, CONTEXT), tmp_path / "now.xlsx")
    long_ago = time.gmtime(-1)  # before the years that an archive can tell
    monkeypatch.setattr(time, "localtime", lambda *_: long_ago)
    write_sheet(make_sheet(ITEMS, CONTEXT), tmp_path / "then.xlsx")
    assert (tmp_path / "now.xlsx").read_bytes() == (tmp_path / "then.xlsx").read_bytes()


def test_a_text_that_no_workbook_holds_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"bad\.xlsx: no workbook holds the text '007', .*; write it as \.csv"):
        write_sheet(make_sheet(ITEMS, CONTEXT.assign(text="\x1b[2J")), tmp_path / "bad.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_rows_may_be_reordered_and_columns_too(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    sheet = filled(["yes", "no", "unsure", ""])[["user", "answer", "image", "item"]].iloc[::-1]
    sheet.to_csv(path, index=False)
    panel = read_answers(path)
    answers = dict(zip(panel.item_ids, panel.answers[0].tolist(), strict=True))
    assert answers == {"007": 1, "b": 0, "c": -1, "d": -1}


def test_several_files_are_several_experts_named_after_them(tmp_path: Path) -> None:
    for name, answers in (("ann", ["yes"] * 4), ("bob", ["no", "", "", "unsure"])):
        filled(answers).to_csv(tmp_path / f"{name}.sheet.csv", index=False)
    panel = read_answers([tmp_path / "ann.sheet.csv", tmp_path / "bob.sheet.csv"])
    assert panel.expert_ids.tolist() == ["ann", "bob"]
    assert panel.answers.tolist() == [[1, 1, 1, 1], [0, -1, -1, -1]]
    frames = read_answers([filled(["yes"] * 4), filled(["no"] * 4)])
    assert frames.expert_ids.tolist() == ["expert 1", "expert 2"]


def test_numbers_and_missing_cells_of_frames_are_answers() -> None:
    frame = pd.DataFrame({"item": [1, 2, 3], "label": [1.0, 0.0, np.nan]})
    panel = read_answers(frame)
    assert panel.item_ids.tolist() == ["1", "2", "3"]
    assert panel.answers.tolist() == [[1, 0, -1]]


def test_equal_answers_twice_are_one_and_different_ones_are_refused() -> None:
    frame = pd.DataFrame({"item": ["x", "x", "y"], "expert": "ann", "answer": ["yes", "yes", "no"]})
    with pytest.warns(DataWarning, match="1 answers of experts are duplicated"):
        assert read_answers(frame).answers.tolist() == [[1, 0]]
    with pytest.raises(InputError, match=r"expert 'ann' gave item 'x' different answers \(the data frame, row 1; "):
        read_answers(frame.assign(answer=["yes", "unsure", "no"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,answer\nx,perhaps\n", "row 1 .*column 'answer': an answer must be yes or no .* got 'perhaps'"),
        ("item,answer\n,yes\n", "the id is blank"),
        ("item;comment\nx;yes\n", "no vote column"),
        ("", "is empty"),
        ("item,answer\n", "no rows"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_answers(path)


def test_broken_workbooks_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bad.xlsx"
    path.write_bytes(b"PK\x03\x04 no workbook")
    with pytest.raises(InputError, match="is not a whole zip archive"):
        read_answers(path)
    openpyxl.Workbook().save(path)
    with pytest.raises(InputError, match="has 0 sheets with cells"):
        read_answers(path)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (CONTEXT.assign(p=0.3), "column 'p' would show the experts the soft labels"),
        (CONTEXT.assign(Label="x"), "column 'Label' could be taken for the answer"),
        (pd.concat([CONTEXT, CONTEXT]), "item 'd' is duplicated"),
    ],
)
def test_context_that_reveals_or_confuses_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_context(frame)


def test_context_must_have_every_item() -> None:
    with pytest.raises(InputError, match="the context has no row for item 'b'"):
        make_sheet(ITEMS, CONTEXT[CONTEXT["item"] != "b"])
