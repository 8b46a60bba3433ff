"""Several questions and classes on the command line: sheet, calibration, evaluation, agreement and report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.runs import open_study

pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
FAST = ("--n-bootstrap", "50")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Votes, experts and scores on two questions; the items of a question have ids of their own."""
    folder = tmp_path_factory.mktemp("study")
    parts: dict[str, list[pd.DataFrame]] = {"votes": [], "experts": [], "scores": [], "items": []}
    for seed, name in enumerate(("blur", "dark")):
        study = softgold.simulate(n_items=60, n_annotators=12, votes_per_item=5, seed=seed)
        for kind, table in (
            ("votes", study.votes.to_frame()),
            ("experts", study.experts.table.to_frame()),
            ("scores", study.scores.to_frame()),
        ):
            parts[kind].append(table.assign(item=name + "-" + table["item"].astype("str")))
        ids = parts["scores"][-1]["item"]
        parts["items"].append(pd.DataFrame({"item": ids, "task": name, "patient": np.arange(len(ids)) // 3}))
    for kind, found in parts.items():
        pd.concat(found).to_csv(folder / f"{kind}.csv", index=False)
    return folder


@pytest.fixture
def run(cli: Callable[..., Any], tables: Path, tmp_path: Path) -> Path:
    answer = cli("fit", tables / "votes.csv", "--task-col", "task", "--engine", "coordinate", "-o", tmp_path / "run")
    assert answer.code == 0, answer.err
    return tmp_path / "run"


def test_from_sheet_to_report(cli: Callable[..., Any], run: Path, tables: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert cli("sample-experts", run, "-o", sheet, "--budget", 40).code == 0
    drawn = pd.read_csv(sheet, dtype="str")
    assert drawn.columns.tolist() == ["task", "item", "answer"]
    assert drawn["task"].value_counts().to_dict() == {"blur": 20, "dark": 20}
    truth = pd.read_csv(tables / "experts.csv").groupby("item")["vote"].mean()
    known = drawn[drawn["item"].isin(truth.index)]
    known.assign(answer=(truth[known["item"]] > 0.5).map({True: "yes", False: "no"}).to_numpy()).to_csv(
        tmp_path / "back.csv", index=False
    )
    key = tmp_path / "sheet.key.csv"
    answer = cli("calibrate", run, "--experts", tmp_path / "back.csv", "--key", key, *FAST)
    assert answer.code == 0, answer.err
    thresholds = {name: task.calibration.threshold for name, task in open_study(run).tasks.items()}
    labels = pd.read_csv(run / "labels.csv")
    for name, threshold in thresholds.items():
        own = labels[labels["task"] == name]
        assert set(own["threshold"]) == {threshold}
        assert np.array_equal(own["label"], (own["p"] >= threshold).astype(int))
    scores = ("--scores", tables / "scores.csv", "--n-vote-bootstrap", 0)
    answer = cli("evaluate", run, *scores, "--items", tables / "items.csv", "--group-col", "patient", *FAST)
    assert answer.code == 0, answer.err
    assert "labels released at the threshold of each task" in answer.err
    assert set(pd.read_csv(run / "metrics.csv")["task"]) == {"blur", "dark", "average"}
    assert cli("report", run).code == 0
    page = (run / "report.html").read_text()
    assert "Average of 2 tasks" in page
    assert all(f"{threshold:.3f}" in page for threshold in thresholds.values())


def test_experts_may_name_the_task_or_the_item_alone(cli: Callable[..., Any], run: Path, tables: Path) -> None:
    answer = cli("calibrate", run, "--experts", tables / "experts.csv", "--json", *FAST)
    assert answer.code == 0, answer.err
    by_item = json.loads(answer.out)
    experts = pd.read_csv(tables / "experts.csv")
    experts.assign(task=experts["item"].str[:4]).to_csv(run / "with_task.csv", index=False)
    answer = cli("calibrate", run, "--experts", run / "with_task.csv", "--json", "--force", *FAST)
    by_task = json.loads(answer.out)
    assert {name: found["threshold"] for name, found in by_item.items()} == {
        name: found["threshold"] for name, found in by_task.items()
    }


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("item,answer\nblur-nothing,yes\n", "items that no task of the run has, such as 'blur-nothing'"),
        ("task,item,answer\nbright,blur-x,yes\n", "experts answered task 'bright', which the run does not have"),
        ("item,answer\nblur-i001,perhaps yes\n", "an answer must be yes or no"),
    ],
)
def test_answers_that_do_not_fit(cli: Callable[..., Any], run: Path, tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "experts.csv").write_text(table)
    answer = cli("calibrate", run, "--experts", tmp_path / "experts.csv")
    assert (answer.code, said in answer.err) == (2, True), answer.err
    assert not (run / "labels.csv").exists()


def test_agreement_of_every_question(cli: Callable[..., Any], tables: Path) -> None:
    answer = cli("agreement", tables / "votes.csv", "--task-col", "task", "--json", *FAST)
    assert list(json.loads(answer.out)) == ["blur", "dark"]
    answer = cli("agreement", tables / "votes.csv", "--task-col", "task", *FAST)
    assert answer.out.count("Krippendorff's alpha") == 2


def test_models_without_scores_of_a_question(cli: Callable[..., Any], run: Path, tables: Path, tmp_path: Path) -> None:
    scores = pd.read_csv(tables / "scores.csv")
    scores[scores["item"].str.startswith("blur")].to_csv(tmp_path / "half.csv", index=False)
    answer = cli("evaluate", run, "--scores", tmp_path / "half.csv", "--n-vote-bootstrap", 0, *FAST)
    assert answer.code == 0, answer.err
    assert "no scores of dark: not evaluated" in answer.err
    scores.assign(item="other").head(1).to_csv(tmp_path / "none.csv", index=False)
    answer = cli("evaluate", run, "--scores", tmp_path / "none.csv", "--force", *FAST)
    assert (answer.code, "no score of any item" in answer.err) == (2, True)


@pytest.fixture
def classes(cli: Callable[..., Any], tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    rows = [
        (f"i{i}", f"a{a}", ["cat", "cow", "dog"][truth[i] if rng.random() < 0.8 else rng.integers(0, 3)])
        for i in range(40)
        for a in range(5)
    ]
    pd.DataFrame(rows, columns=["item", "annotator", "vote"]).to_csv(tmp_path / "votes.csv", index=False)
    answer = cli("fit", tmp_path / "votes.csv", "--engine", "coordinate", "-o", tmp_path / "run")
    assert answer.code == 0, answer.err
    return tmp_path / "run"


def test_classes_from_fit_to_report(cli: Callable[..., Any], classes: Path, tmp_path: Path) -> None:
    soft = pd.read_csv(classes / "soft_labels.csv")
    even = soft[["p_cat", "p_cow", "p_dog"]] * 0.5 + 1 / 6
    soft[["item"]].join(even).to_csv(tmp_path / "net.csv", index=False)
    answer = cli("evaluate", classes, "--scores", tmp_path / "net.csv", *FAST)
    assert answer.code == 0, answer.err
    assert "net: accuracy 1.000" in answer.err
    assert "overall" in set(pd.read_csv(classes / "metrics.csv")["task"])
    sheet = soft[["item"]].assign(answer=np.where(soft.index % 5 == 0, "unsure", soft["label"]))
    sheet.to_csv(tmp_path / "experts.csv", index=False)
    answer = cli("calibrate", classes, "--experts", tmp_path / "experts.csv", *FAST)
    assert answer.code == 0, answer.err
    assert cli("report", classes).code == 0
    assert "All classes together" in (classes / "report.html").read_text()


def test_class_scores_that_do_not_fit(cli: Callable[..., Any], classes: Path, tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("item,p_cat,p_cow\ni0,0.5,0.5\n")
    answer = cli("evaluate", classes, "--scores", tmp_path / "net.csv")
    assert (answer.code, "no column p_dog for the class 'dog'" in answer.err) == (2, True)
    (tmp_path / "experts.csv").write_text("item,answer\ni0,horse\n")
    answer = cli("calibrate", classes, "--experts", tmp_path / "experts.csv")
    assert (answer.code, "an answer must be a class ('cat', 'cow', 'dog')" in answer.err) == (2, True)


def test_a_sheet_from_chosen_items(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    one = open_study(run).tasks["blur"].path
    ids = pd.read_csv(one / "soft_labels.csv")["item"].head(7)
    ids.to_frame().to_csv(tmp_path / "items.csv", index=False)
    answer = cli("sample-experts", one, "-o", tmp_path / "sheet.csv", "--items", tmp_path / "items.csv", "--budget", 50)
    assert answer.code == 0, answer.err
    assert sorted(pd.read_csv(tmp_path / "sheet.csv")["item"]) == sorted(ids)
    (tmp_path / "items.csv").write_text("item\nnowhere\n")
    answer = cli("sample-experts", one, "-o", tmp_path / "other.csv", "--items", tmp_path / "items.csv")
    assert (answer.code, "1 items have no soft label, such as 'nowhere'" in answer.err) == (2, True)
