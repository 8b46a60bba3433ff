"""The report: its sections follow the files, its numbers are theirs, ids are escaped, and it stays small."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import InputError, OutputError, StorageError
from softgold.evaluation.result import Average, TaskEvaluation
from softgold.planning import plan_votes
from softgold.report import render_report, write_report
from softgold.report.html import report_page
from softgold.runs import open_run

EVIL = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """Collect anchors, text, and every address that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"src", "href", "action", "data", "xlink:href"}:
                self.addresses.append(value or "")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.parts)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def keys(run: Path) -> list[str]:
    return [section.key for section in report_page(open_run(run)).sections]


@pytest.fixture
def run(full_run: Path, tmp_path: Path) -> Path:
    """A copy of the full run, to change."""
    return Path(shutil.copytree(full_run, tmp_path / "run"))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A run with soft labels alone."""
    folder = tmp_path / "bare"
    folder.mkdir()
    pd.DataFrame({"item": ["a", "b", EVIL], "p": [0.1, 0.9, 0.5]}).to_csv(folder / "soft_labels.csv", index=False)
    return folder


def test_sections_follow_the_files(run: Path, bare: Path) -> None:
    everything = ["data", "soft-labels", "experts", "models", "annotators", "next", "fit"]
    assert keys(run) == everything
    for name, section in (
        ("evaluation.json", "models"),
        ("calibration.json", "experts"),
        ("annotators.csv", "annotators"),
    ):
        (run / name).unlink()
        everything.remove(section)
        assert keys(run) == everything
    assert keys(bare) == ["data", "soft-labels", "next"]


@pytest.mark.slow
def test_the_page_stands_alone(run: Path) -> None:
    page = read(render_report(open_run(run)))
    assert [address for address in page.addresses if not address.startswith("#")] == ["data:,"]
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("script") == 1
    assert "link" in page.tags
    assert page.tags.count("svg") >= 11
    assert page.tags.count("svg") == page.tags.count("desc")


def test_the_numbers_are_those_of_the_files(run: Path) -> None:
    text = read(render_report(open_run(run))).text
    calibration = json.loads((run / "calibration.json").read_text())
    evaluation = json.loads((run / "evaluation.json").read_text())
    assert f"the threshold {calibration['threshold']:.4f}" in text
    assert f"Krippendorff alpha of {calibration['agreement']['alpha']:.2f}" in text
    table = evaluation["tasks"][0]["table"]
    for value, low, high in zip(table["value"], table["low"], table["high"], strict=True):
        assert f"{value:.3f} ({low:.3f}–{high:.3f})" in text
    assert f"R² = {evaluation['tasks'][0]['comparisons'][0]['r_squared']:.3f}" in text
    soft = pd.read_csv(run / "soft_labels.csv")
    for item in soft.nlargest(5, "uncertainty")["item"]:
        assert item in text
    bad = pd.read_csv(run / "annotators.csv").query("p_adversarial > 0.95")
    assert len(bad)
    for name in bad["annotator"]:
        assert name in text


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((2, 2, 2), "6 votes on 3 items, 2 on each."),
        ((1, 3, 4), "8 votes on 3 items, half of the items have 3 votes or"),
    ],
)
def test_the_first_sentence_says_how_many_votes_items_have(tmp_path: Path, counts: tuple[int, ...], words: str) -> None:
    votes = [(f"i{item}", f"a{who}", item % 2) for item, count in enumerate(counts) for who in range(count)]
    table = pd.DataFrame(votes, columns=["item", "annotator", "vote"])
    softgold.fit(table, engine="coordinate").save(tmp_path / "run")
    assert words in report_page(open_run(tmp_path / "run")).lead


def test_the_plan_and_the_most_uncertain_items_are_listed(run: Path) -> None:
    opened = open_run(run)
    section = next(section for section in report_page(opened).sections if section.key == "next")
    plan = plan_votes(opened.fit, len(opened.soft_labels)).to_frame()
    listed = {table.title: [row[0].text for row in table.rows] for table in section.panels[0].tables}
    first = next(iter(listed.values()))
    assert first == plan["item"].tolist()[: len(first)]
    uncertain = opened.soft_labels.item_ids[int(np.argmax(opened.soft_labels.uncertainty))]
    assert listed["Most uncertain labels"][0] == uncertain


def test_ids_are_shown_as_text(bare: Path) -> None:
    page = render_report(open_run(bare))
    assert EVIL not in page
    assert EVIL in read(page).text


def test_names_of_models_annotators_tasks_and_notes_are_shown_as_text(run: Path) -> None:
    annotators = pd.read_csv(run / "annotators.csv")
    annotators.loc[0, ["annotator", "p_adversarial"]] = [EVIL, 1.0]
    annotators.to_csv(run / "annotators.csv", index=False)
    text = (run / "evaluation.json").read_text().replace("model_1", EVIL).replace('"task": null', f'"task": "{EVIL}"')
    (run / "evaluation.json").write_text(text)
    page = render_report(open_run(run))
    assert EVIL not in page
    assert page.count("<script>") == 1


def test_an_annotator_called_na_is_no_missing_value(run: Path) -> None:
    annotators = pd.read_csv(run / "annotators.csv", dtype={"annotator": "str"})
    annotators.loc[0, "annotator"] = "NA"
    annotators.to_csv(run / "annotators.csv", index=False)
    assert "NA" in open_run(run).annotators["annotator"].tolist()


def test_the_same_run_gives_the_same_page(run: Path) -> None:
    assert render_report(open_run(run)) == render_report(open_run(run))


def test_writing(run: Path, tmp_path: Path) -> None:
    assert write_report(run) == run / "report.html"
    with pytest.raises(OutputError, match="exists already"):
        write_report(run)
    write_report(run, force=True)
    assert write_report(run, tmp_path / "page.html").read_bytes() == (run / "report.html").read_bytes()


def test_what_is_wrong_with_a_run_is_said(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a run: it has no soft_labels.csv"):
        open_run(tmp_path)
    record = json.loads((run / "evaluation.json").read_text())
    for text, said in (
        ("{", "evaluation.json is damaged"),
        ("{}", "evaluation.json was not written by this version of softgold"),
        (json.dumps({**record, "tasks": [{}]}), r"tasks\[0\].* is missing.*run 'softgold evaluate' again"),
        (json.dumps({**record, "models": 3}), r"models must be a list, got 3"),
    ):
        (run / "evaluation.json").write_text(text)
        with pytest.raises(StorageError, match=said):
            render_report(open_run(run))


def test_a_calibration_of_other_labels_is_said(run: Path) -> None:
    soft = pd.read_csv(run / "soft_labels.csv")
    soft.assign(p=soft["p"] / 2).to_csv(run / "soft_labels.csv", index=False)
    text = read(render_report(open_run(run))).text
    assert "soft_labels.csv was changed after the fit" in text
    assert "calibration.json was made with another soft_labels.csv than the one in the run" in text


def test_an_evaluation_at_an_older_threshold_is_said(run: Path) -> None:
    opened = open_run(run)
    assert opened.problems() == ()
    labels = replace(opened.calibration.labels, label=1 - opened.calibration.labels.label)
    opened.add(replace(opened.calibration, labels=labels), force=True)
    text = read(render_report(open_run(run))).text
    assert "evaluation.json was made with another labels.csv than the one in the run: run 'softgold evaluate'" in text


@pytest.mark.slow
def test_many_items_and_annotators_make_a_small_page(tmp_path: Path) -> None:
    n, rng = 200_000, np.random.default_rng(0)
    n_votes = rng.integers(1, 40, n)
    p = rng.beta(0.3, 0.9, n)
    frame = pd.DataFrame({"item": [f"patient/{i:06d}/study" for i in range(n)], "p": p, "n_votes": n_votes})
    frame.assign(n_positive=rng.binomial(n_votes, p)).to_csv(tmp_path / "soft_labels.csv", index=False)
    m = 5000
    ability = rng.normal(1, 1, m)
    annotators = pd.DataFrame({"annotator": [f"w{i}" for i in range(m)], "ability_mean": ability, "ability_sd": 0.1})
    annotators = annotators.assign(
        ability_lo=ability - 0.2,
        ability_hi=ability + 0.2,
        **{f"{rate}{end}": 0.8 for rate in ("sensitivity", "specificity") for end in ("", "_lo", "_hi")},
        p_adversarial=(ability < 0).astype(float),
        n_votes=rng.integers(1, 2000, m),
        agreement=0.8,
    )
    annotators.to_csv(tmp_path / "annotators.csv", index=False)
    page = render_report(open_run(tmp_path))
    assert len(page.encode()) < 500_000
    text = read(page).text
    assert "20 of 200,000; all are in the table of soft labels" in text
    assert "40 of 5,000; all are in annotators.csv" in text


def average_of(task: TaskEvaluation) -> Average:
    return Average(**{entry.name: getattr(task, entry.name) for entry in fields(Average)})


def test_tasks_become_panels(run: Path) -> None:
    opened = open_run(run)
    task = opened.evaluation.only
    tasks = (replace(task, task="heart"), replace(task, task="lung"))
    opened.add(replace(opened.evaluation, tasks=tasks, average=average_of(task)), force=True)
    models = next(section for section in report_page(open_run(run)).sections if section.key == "models")
    assert [panel.name for panel in models.panels] == ["Average of 2 tasks", "heart", "lung"]


@pytest.mark.slow
def test_many_tasks_and_models_make_a_page_that_opens(run: Path) -> None:
    opened = open_run(run)
    task, names = opened.evaluation.only, [f"model_{i}" for i in range(45)]
    template = task.table[task.table["model"] == "model_1"]
    table = pd.concat([template.assign(model=name, value=template["value"] + i / 1000) for i, name in enumerate(names)])
    task = replace(task, table=table, beats={name: np.full((45, 45), 0.5) for name in task.beats})
    many = tuple(replace(task, task=f"task {i}") for i in range(30))
    evaluation = replace(opened.evaluation, models=tuple(names), tasks=many, average=average_of(task))
    opened.add(evaluation, force=True)
    page = render_report(open_run(run))
    assert len(page.encode()) < 5_000_000
    text = read(page).text
    assert "24 of 30 tasks are shown here; all are in metrics.csv" in text
    assert "40 of 45 models; all are in metrics.csv" in text
    assert "the best 12 of 45; all are in evaluation.json" in text


def test_a_model_without_values_has_dashes(run: Path) -> None:
    opened = open_run(run)
    task = opened.evaluation.only
    table = task.table.copy()
    table.loc[table["model"] == "model_1", ["value", "low", "high", "rank"]] = np.nan
    opened.add(
        replace(opened.evaluation, tasks=(replace(task, table=table, stability=task.stability.iloc[:0]),)), force=True
    )
    page = render_report(open_run(run))
    assert re.search(r"model_1</td><td class=\"number\" data-order=\"-inf\">–</td>", page)


@pytest.mark.parametrize("votes_per_item", [30, 60])
def test_the_page_of_a_campaign_that_is_all_but_done_still_forecasts(tmp_path: Path, votes_per_item: int) -> None:
    settings = {"n_items": 60, "n_annotators": 60, "ability_mean": 2.5, "votes_per_item": votes_per_item}
    fit = softgold.fit(softgold.simulate(**settings, seed=3).votes, engine="coordinate")  # type: ignore[arg-type]
    with pytest.raises(softgold.errors.BudgetError) as caught:
        plan_votes(fit, 60)
    fit.save(tmp_path / "run")
    text = write_report(tmp_path / "run").read_text()
    assert "Expected share of wrong labels" in text
    assert ("Where votes are worth most" in text) == (caught.value.open_votes > 0)
    assert ("No vote is worth buying" in text) == (caught.value.open_votes == 0)
