"""The section on label convergence: the numbers of the files, escaped names, and runs that stay as they are."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softgold.cli import main
from softgold.errors import InputError, StorageError
from softgold.report import render_report, write_report
from softgold.report.blocks import Section, Table
from softgold.report.convergence.plots import Range, Series, Stack, StraightLine, cloud, ranges, series, stacked_bars
from softgold.report.convergence.section import convergence_section
from softgold.report.convergence.summary import read_convergence
from softgold.report.html import report_page
from softgold.report.pages import join_pages
from softgold.runs import open_run

EVIL = "<script>alert(1)</script>"
WORDS = {"title": "T", "description": f"says {EVIL}"}
TYPES = ["correct", "bad_boundary", "wrong_class", "merge", "merge_wrong_class", "missed_or_additional"]


def draw_study(path: Path, raters: tuple[str, ...]) -> None:
    """Write 40 images; on the one with the evil name nobody agrees, so that it comes first."""
    rng = np.random.default_rng(0)
    rows: list[tuple[object, ...]] = []
    for image in range(39):
        for thing in range(4):
            box = np.array([40.0 * thing, 0, 30, 30])
            for rater in raters:
                if rng.random() > 0.1:
                    kind = "cat" if rng.random() > 0.2 else "dog"
                    rows.append((f"i{image}", rater, kind, *(box + rng.normal(0, 1.5, 4)).round(2)))
    rows += [
        (EVIL, rater, "cat", 1000 * place + 50 * thing, 0, 10, 10)
        for place, rater in enumerate(raters)
        for thing in range(9)
    ]
    pd.DataFrame(rows, columns=["image", "annotator", "category", "x", "y", "w", "h"]).to_csv(path, index=False)


def made(folder: Path, raters: tuple[str, ...]) -> Path:
    draw_study(folder / "boxes.csv", raters)
    options = ["--subsets", "400", "--fraction", "0.25", "-q"]
    assert main(["convergence", str(folder / "boxes.csv"), "-o", str(folder / "out"), *options]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def two_raters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("two"), ("ann", "bob"))


@pytest.fixture(scope="module")
def three_raters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("three"), ("ann", "bob", EVIL))


@pytest.fixture
def folder(two_raters: Path, tmp_path: Path) -> Path:
    """A copy, to change."""
    return Path(shutil.copytree(two_raters, tmp_path / "out"))


def section_of(folder: Path) -> Section:
    found = read_convergence(folder)
    assert found is not None
    return convergence_section(found)


def table_of(section: Section, title: str) -> Table:
    return next(table for table in section.panels[0].tables if table.title == title)


def figure_table(section: Section, title: str) -> Table:
    table = next(figure for figure in section.panels[0].figures if figure.title == title).table
    assert table is not None
    return table


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_the_bound_and_both_intervals_are_those_of_the_file(two_raters: Path) -> None:
    record = json.loads((two_raters / "convergence.json").read_text())
    section = section_of(two_raters)
    assert section.panels[0].notes == (record["sentence"],)
    table = table_of(section, "Intervals, 95 %")
    assert table.columns[2:4] == ("interval of the full data", "interval of 25 % subsets")
    row = next(row for row in table.rows if row[0].text == "mAP between the raters")
    found = record["map_interval"]
    expected = [f"{low:.3f} to {high:.3f}" for low, high in (found[key] for key in ("full_normal", "normal"))]
    assert [cell.text for cell in row[1:4]] == [f"{record['map']:.3f}", *expected]
    assert [name[0].text for name in table.rows if name[2].strong] == ["mAP between the raters"]
    chart = str(section.panels[0].figures[0].svg)
    assert f"full data, 95 %: {expected[0]}" in chart
    assert f"subsets of 25 %, 95 %: {expected[1]}" in chart


def test_thresholds_and_types_are_those_of_the_tables(three_raters: Path) -> None:
    section = section_of(three_raters)
    thresholds = pd.read_csv(three_raters / "thresholds.csv")
    assert texts(figure_table(section, "Agreement over the overlap threshold")) == [
        [f"{row.threshold:.2f}", f"{row.alpha_mean_image:.3f}", "–"] for row in thresholds.itertuples()
    ]
    counts = pd.read_csv(three_raters / "variation.csv").groupby("threshold")[TYPES].sum()
    assert texts(figure_table(section, "Types of variation")) == [
        [f"{threshold:.2f}", *(f"{count:,}" for count in row)]
        for threshold, row in zip(counts.index, counts.to_numpy(), strict=True)
    ]
    chart = next(figure.svg for figure in section.panels[0].figures if figure.title == "Types of variation")
    bars = [bar for bar in ET.fromstring(str(chart)).iter("rect") if "," in bar[0].text and ":" in bar[0].text]
    first = {bar[0].text.split(", ", 1)[1]: bar for bar in bars if bar[0].text.startswith("0.5, ")}
    heights = {words: float(bar.attrib["height"]) for words, bar in first.items()}
    correct, missed = counts["correct"].iloc[0], counts["missed_or_additional"].iloc[0]
    ratio = heights[f"correct: {correct:,}"] / heights[f"missed or additional: {missed:,}"]
    assert ratio == pytest.approx(correct / missed, rel=0.02)


def test_subsets_are_drawn_and_capped_with_both_lines(two_raters: Path) -> None:
    record = json.loads((two_raters / "convergence.json").read_text())
    section = section_of(two_raters)
    figure = next(figure for figure in section.panels[0].figures if figure.title == "From alpha to mAP")
    root = ET.fromstring(str(figure.svg))
    assert len(list(root.iter("circle"))) == 300
    assert "(300 of 400 are drawn)" in figure.words
    assert {line.get("class") for line in root.iter("line")} >= {"line-published", "line-own"}
    line = record["refitted"]["line"]
    assert [row[:3] for row in texts(figure.table)] == [
        ["published", "0.836", "0.197"],
        ["refitted", f"{line['slope']:.3f}", f"{line['intercept']:.3f}"],
    ]


def test_three_raters_have_pairs_and_no_map_of_subsets(three_raters: Path) -> None:
    section = section_of(three_raters)
    pairs = pd.read_csv(three_raters / "pairs.csv").sort_values("alpha")
    assert texts(table_of(section, "Pairs of raters")) == [
        [row.rater_a, row.rater_b, f"{row.n_images}", f"{row.alpha:.3f}", f"{row.map:.3f}"]
        for row in pairs.itertuples()
    ]
    figure = next(figure for figure in section.panels[0].figures if figure.title == "From alpha to mAP")
    assert len(list(ET.fromstring(str(figure.svg)).iter("circle"))) == len(pairs) == 3
    table = table_of(section, "Intervals, 95 %")
    assert [row[0].text for row in table.rows if row[2].strong] == ["mAP by the published line"]


def test_the_images_on_which_raters_differ_most_come_first(two_raters: Path) -> None:
    images = pd.read_csv(two_raters / "images.csv")
    lowest = images[images["threshold"] == 0.5]
    table = table_of(section_of(two_raters), "Images to look at")
    assert table.rows[0][0].text == EVIL
    assert [int(row[2].text) for row in table.rows] == lowest["n_variations"].head(25).tolist()
    assert table.rest == f"25 of {len(lowest)} rows at this threshold; all are in images.csv"


@pytest.mark.parametrize("study", ["two_raters", "three_raters"])
def test_names_are_escaped_without_a_run(study: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    page = write_report(request.getfixturevalue(study), tmp_path / "page.html").read_text()
    assert EVIL not in page
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert '<section id="convergence">' in page
    assert '<section id="soft-labels">' not in page


def test_the_command_writes_the_page(cli: Callable, folder: Path) -> None:
    answer = cli("report", folder)
    assert answer.code == 0
    page = (folder / "report.html").read_text()
    assert "images.csv" in page
    assert "Label convergence" in page


@pytest.mark.slow
def test_a_run_is_as_before_and_may_have_both(full_run: Path, folder: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(full_run, tmp_path / "run"))
    before = [section.key for section in report_page(open_run(run)).sections]
    assert read_convergence(run) is None
    assert 'id="convergence"' not in write_report(run).read_text()
    for path in folder.iterdir():
        shutil.copy(path, run)
    both = join_pages(report_page(open_run(run)), report_page(read_convergence(run)))
    assert [section.key for section in both.sections] == [*before, "convergence"]
    page = write_report(run, force=True).read_text()
    assert '<section id="convergence">' in page
    assert '<section id="models">' in page


def test_what_is_not_there_is_left_out(folder: Path) -> None:
    (folder / "images.csv").unlink()
    (folder / "subsets.csv").unlink()
    section = section_of(folder)
    assert "Images to look at" not in [table.title for table in section.panels[0].tables]
    assert "From alpha to mAP" not in [figure.title for figure in section.panels[0].figures]


def test_the_lowest_threshold_is_read_across_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pd.read_csv(folder / "images.csv")
    monkeypatch.setattr("softgold.report.convergence.summary.CHUNK", 7)
    found = read_convergence(folder)
    assert found is not None
    assert found.images["n_variations"].tolist() == images.loc[images["threshold"] == 0.5, "n_variations"].tolist()


def test_raters_who_never_differ_have_no_images_to_look_at(tmp_path: Path) -> None:
    rows = [f"i{image},{rater},cat,0,0,10,10" for image in range(20) for rater in ("ann", "bob")]
    (tmp_path / "boxes.csv").write_text("\n".join(["image,annotator,category,x,y,w,h", *rows]) + "\n")
    assert main(["convergence", str(tmp_path / "boxes.csv"), "-o", str(tmp_path / "out"), "-q"]) == 0
    section = section_of(tmp_path / "out")
    assert "Images to look at" not in [table.title for table in section.panels[0].tables]
    assert "nan" not in str(section.panels[0].figures)
    assert "100.0 mAP" in render_report(None, read_convergence(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("convergence.json", "{", r"convergence\.json is damaged"),
        ("convergence.json", "{}", "sentence, basis"),
        ("images.csv", "image,threshold\n<b>,x,y,z\n1", r"images\.csv is damaged"),
        ("subsets.csv", "alpha,map\nx,1\n", r"subsets\.csv is damaged"),
        ("subsets.csv", "beta\n1\n", r"subsets\.csv is damaged"),
        ("convergence.json", None, "convergence.json is not what this version of softgold writes: KeyError"),
    ],
)
def test_damaged_files_are_named(folder: Path, name: str, text: str | None, message: str) -> None:
    if text is None:
        record = json.loads((folder / name).read_text())
        del record["published"]["line"]
        text = json.dumps(record)
    (folder / name).write_text(text)
    with pytest.raises(StorageError, match=message):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_a_report_on_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="needs a run"):
        render_report(None)


CHARTS = {
    "ranges": lambda: ranges([Range(EVIL, 0.5, 0.4, 0.6), Range("b", 0, 0, 0, warns=True)], x_title=EVIL),
    "series": lambda: series([Series(EVIL, ((0.5, 0.2),))], x_title="x", y_title=EVIL),
    "cloud": lambda: cloud([(0.5, 0.5)], [StraightLine(EVIL, 9, -9)], x_title="x", y_title="y"),
    "stacked": lambda: stacked_bars(
        [Stack(EVIL, (0, 0)), Stack("b", (5, 2))], [("c", EVIL), ("d", "d")], x_title="x", y_title="y"
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_sound_xml_inside_its_frame(name: str) -> None:
    text = str(CHARTS[name]().render(**WORDS))
    root = ET.fromstring(text)
    assert root.find("desc").text == f"says {EVIL}"
    assert root.find(".//script") is None
    assert "nan" not in text
    width, height = (float(part) for part in root.attrib["viewBox"].split()[2:])
    for mark in [*root.iter("circle"), *root.iter("rect")]:
        x, y = float(mark.get("cx") or mark.get("x")), float(mark.get("cy") or mark.get("y"))
        assert 0 <= x <= width
        assert 0 <= y <= height
