"""Several questions and classes on the command line: sheet, calibration, evaluation, agreement and report."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softgold
import softgold.runs
from softgold.cli import main
from softgold.report.html import report_page
from softgold.report.lead import study_lead
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


@pytest.fixture(scope="module")
def fitted(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run on two questions; not to be changed."""
    run = tmp_path_factory.mktemp("fitted") / "run"
    options = ("--task-col", "task", "--engine", "coordinate", "--quiet")
    assert main(["fit", str(tables / "votes.csv"), *options, "-o", str(run)]) == 0
    return run


@pytest.fixture
def run(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "run"))


@pytest.mark.slow
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
    assert "Experts labelled 40 items. Cut at the threshold of each question, labels agree with them in" in page
    assert "Next: collect more votes on the" in page
    assert all(f"{threshold:.3f}" in page for threshold in thresholds.values())


@pytest.mark.slow
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


def test_agreement_finds_a_column_of_tasks(cli: Callable[..., Any], tables: Path, tmp_path: Path) -> None:
    votes, items = (pd.read_csv(tables / name) for name in ("votes.csv", "items.csv"))
    votes.merge(items, on="item").to_csv(tmp_path / "study.csv", index=False)
    table = tmp_path / "study.csv"
    named, found, nominal = (
        json.loads(cli("agreement", table, *options, "--json", *FAST).out)
        for options in (("--task-col", "task"), (), ("--nominal",))
    )
    for other in (found, nominal):
        assert [of["alpha"] for of in other.values()] == pytest.approx([of["alpha"] for of in named.values()])
        assert list(other) == list(named) == ["blur", "dark"]


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("item,n_cat,n_cow,n_dog\nx,1,2,0\ny,2,0,1\n", ()),
        ("item,n_cat,n_cow,n_dog\nx,1,2,0\ny,2,0,1\n", ("--nominal",)),
        ("item,n_positive,n_votes\nx,1,2\ny,2,3\n", ()),
        ("item,task,n_positive,n_votes\nx,s,1,2\ny,t,2,3\n", ("--question", "s")),
        ("item,task,n_positive,n_votes\nx,s,1,2\ny,t,2,3\n", ("--task-col", "task")),
    ],
)
def test_agreement_needs_to_know_who_voted(
    cli: Callable[..., Any], tmp_path: Path, table: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "counts.csv").write_text(table)
    answer = cli("agreement", tmp_path / "counts.csv", *options)
    assert (answer.code, "has counts of votes and not who voted" in answer.err) == (2, True), answer.err


def test_counts_beside_the_answers_of_an_expert_are_no_matter(tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text("item,answer,n_positive,n_votes\nx,yes,1,2\ny,no,2,3\n")
    assert softgold.read_experts(tmp_path / "sheet.csv").labels.tolist() == [1, 0]


def test_models_without_scores_of_a_question(cli: Callable[..., Any], run: Path, tables: Path, tmp_path: Path) -> None:
    scores = pd.read_csv(tables / "scores.csv")
    scores[scores["item"].str.startswith("blur")].to_csv(tmp_path / "half.csv", index=False)
    answer = cli("evaluate", run, "--scores", tmp_path / "half.csv", "--n-vote-bootstrap", 0, *FAST)
    assert answer.code == 0, answer.err
    assert "no scores of dark: not evaluated" in answer.err
    scores.assign(item="other").head(1).to_csv(tmp_path / "none.csv", index=False)
    answer = cli("evaluate", run, "--scores", tmp_path / "none.csv", "--force", *FAST)
    assert (answer.code, "no score of any item" in answer.err) == (2, True)


def test_no_other_process_replaces_a_study_while_items_are_drawn(
    cli: Callable[..., Any], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: Path) -> softgold.runs.Study:
        found, folder = open_study(path), os.open(path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):  # what a writer would have to wait for
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
        return found

    monkeypatch.setattr(softgold.runs, "open_study", opened)
    answer = cli("sample-experts", run, "-o", run.with_name("sheet.csv"), "--budget", 40)
    assert answer.code == 0, answer.err


@pytest.fixture(scope="module")
def fitted_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run on three classes; not to be changed."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    rows = [
        (f"i{i}", f"a{a}", ["cat", "cow", "dog"][truth[i] if rng.random() < 0.8 else rng.integers(0, 3)])
        for i in range(40)
        for a in range(5)
    ]
    pd.DataFrame(rows, columns=["item", "annotator", "vote"]).to_csv(folder / "votes.csv", index=False)
    options = ("--engine", "coordinate", "--quiet")
    assert main(["fit", str(folder / "votes.csv"), *options, "-o", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def classes(fitted_classes: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted_classes, tmp_path / "run"))


def test_a_chosen_question_with_classes_is_fitted(cli: Callable[..., Any], tmp_path: Path) -> None:
    rows = [(f"i{i}", f"a{a}", "animal", ["cat", "cow", "dog"][(i + a // 4) % 3]) for i in range(12) for a in range(5)]
    rows += [(f"i{i}", f"a{a}", "blur", ["yes", "no"][i % 2]) for i in range(12) for a in range(5)]
    frame = pd.DataFrame(rows, columns=["item", "annotator", "task", "vote"])
    frame.to_csv(tmp_path / "votes.csv", index=False)
    fit = ("fit", tmp_path / "votes.csv", "--engine", "coordinate", "--question")
    answer = cli(*fit, "animal", "-o", tmp_path / "animal")
    assert answer.code == 0, answer.err
    assert list(open_study(tmp_path / "animal").tasks) == ["cat", "cow", "dog"]
    answer = cli(*fit, "animal", "--positive", "horse", "-o", tmp_path / "horse")
    assert (answer.code, "the values are 'cat', 'cow', 'dog'\n" in answer.err) == (2, True), answer.err


@pytest.mark.slow
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
    page = (classes / "report.html").read_text()
    assert "Average of 3 classes" in page
    assert "Experts labelled 32 items. Cut at the threshold of each class" in page


def test_the_first_paragraph_says_what_experts_have_to_do(cli: Callable[..., Any], run: Path, tables: Path) -> None:
    assert "Next: let experts label a sample (softgold sample-experts), so that each question" in study_lead(
        open_study(run)
    )
    experts = pd.read_csv(tables / "experts.csv")
    experts[experts["item"].str.startswith("blur")].to_csv(run / "blur.csv", index=False)
    assert cli("calibrate", run, "--experts", run / "blur.csv", *FAST).code == 0
    assert "Next: let experts label a sample of dark, too" in study_lead(open_study(run))


@pytest.mark.slow
def test_cards_and_overview_of_a_study_have_intervals(cli: Callable[..., Any], run: Path, tables: Path) -> None:
    assert cli("calibrate", run, "--experts", tables / "experts.csv", *FAST).code == 0
    assert cli("evaluate", run, "--scores", tables / "scores.csv", "--n-vote-bootstrap", 0, *FAST).code == 0
    study = open_study(run)
    page = report_page(study)
    cards = {tile.name: tile for tile in page.tiles}
    found = {name: task.calibration for name, task in study.tasks.items()}
    low = min(found.values(), key=lambda one: one.threshold)
    span = low.interval("both")
    assert f"95% interval {span.low:.3f} to {span.high:.3f}" in cards["experts' thresholds"].words
    worst = min((one.error_rates.accuracy for one in found.values()), key=lambda rate: rate.value)
    card = cards["lowest agreement with experts"]
    assert card.value == f"{worst.value:.1%}"
    assert f"95% interval {worst.low:.1%} to {worst.high:.1%}" in card.words
    table = study.evaluation.average.table.query("metric == 'soft_auroc' and rank == 1").iloc[0]
    assert f"soft AUROC {table['value']:.3f} ({table['low']:.3f}–{table['high']:.3f})" in page.tiles[-1].words
    overview = page.sections[0].panels[0].tables[0]
    assert overview.is_whole
    for (name, one), row in zip(found.items(), overview.rows, strict=True):
        span, rate = one.interval("both"), one.error_rates.accuracy
        assert row[0].text == name
        assert row[-2].text == f"{one.threshold:.3f} ({span.low:.3f}–{span.high:.3f})"
        assert row[-1].text == f"{100 * rate.value:.1f} % ({100 * rate.low:.0f}–{100 * rate.high:.0f})"


@pytest.mark.slow
def test_all_classes_together_have_intervals(cli: Callable[..., Any], classes: Path, tmp_path: Path) -> None:
    soft = pd.read_csv(classes / "soft_labels.csv")
    names = ["p_cat", "p_cow", "p_dog"]
    noise = np.random.default_rng(1).dirichlet([1, 1, 1], len(soft))
    models = {"near": 0.5 * soft[names] + 0.5 * noise, "far": 0.1 * soft[names] + 0.9 * noise}
    scores = pd.concat([soft[["item"]].assign(model=name).join(table) for name, table in models.items()])
    scores.to_csv(tmp_path / "nets.csv", index=False)
    answer = cli("evaluate", classes, "--scores", tmp_path / "nets.csv", *FAST)
    assert answer.code == 0, answer.err
    study = open_study(classes)
    panel = next(section for section in report_page(study).sections if section.key == "models").panels[0]
    assert panel.name == "Average of 3 classes"
    assert "straight line" not in panel.figures[0].words  # two dots always lie on one
    first = study.class_evaluation.overall.iloc[0]
    shown, *_, ceiling = panel.tables[0].rows
    assert panel.tables[0].title == "All classes together"
    assert shown[0].text == first["model"]
    assert shown[1].text == f"{first['value']:.3f} ({first['low']:.3f}–{first['high']:.3f})"
    assert (ceiling[0].text, ceiling[1].text) == ("ceiling", "1.000")


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


@pytest.mark.slow
def test_a_sheet_for_classes_comes_back_with_weights(cli: Callable[..., Any], classes: Path, tmp_path: Path) -> None:
    sheet, key = tmp_path / "sheet.csv", tmp_path / "sheet.key.csv"
    answer = cli("sample-experts", classes, "-o", sheet, "--budget", 20)
    assert (answer.code, "an answer is cat, cow, dog or unsure" in answer.err) == (0, True)
    drawn, kept = pd.read_csv(sheet, dtype="str"), pd.read_csv(key)
    assert drawn.columns.tolist() == ["item", "answer"]
    assert (len(drawn), kept["weight"].sum()) == (20, pytest.approx(40))
    soft = pd.read_csv(classes / "soft_labels.csv").set_index("item")
    largest = soft[["p_cat", "p_cow", "p_dog"]].max(axis=1)
    np.testing.assert_allclose(kept["p"], largest[kept["item"]], rtol=0, atol=1e-9)
    drawn.assign(answer=soft["label"][drawn["item"]].to_numpy()).to_csv(tmp_path / "back.csv", index=False)
    groups = pd.DataFrame({"item": soft.index, "patient": np.arange(len(soft)) // 4})
    groups.to_csv(tmp_path / "patients.csv", index=False)
    asked = ("--group-col", "patient", "--items", tmp_path / "patients.csv")
    answer = cli("calibrate", classes, "--experts", tmp_path / "back.csv", "--key", key, *asked, *FAST)
    assert (answer.code, "bootstraps redraw whole groups (patient)" in answer.err) == (0, True)
    for name, task in open_study(classes).tasks.items():
        # Each answer stands for the items of its stratum: the weighted share of a class is that of the data set.
        truth = (soft["label"][kept["item"]] == name).to_numpy()
        sensitivity = task.calibration.error_rates.sensitivity.value
        assert 0 <= sensitivity <= 1
        assert task.calibration.settings.n_groups == (groups["patient"][groups["item"].isin(kept["item"])]).nunique()
        assert task.calibration.bins["positives"].sum() == truth.sum()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scheme": "neyman"}, "the key is not of a run with several classes"),
        ({"item": "zebra"}, "the key was not made from these soft labels: they lack 'zebra'"),
        ({"p": 0.123}, "is 0.123 in the key and"),
    ],
)
def test_a_key_that_does_not_fit_the_classes(
    cli: Callable[..., Any], classes: Path, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    assert cli("sample-experts", classes, "-o", tmp_path / "sheet.csv", "--budget", 5).code == 0
    key = pd.read_csv(tmp_path / "sheet.key.csv")
    for column, value in change.items():
        key.loc[slice(None) if column == "scheme" else 0, column] = value
    key.to_csv(tmp_path / "other.csv", index=False)
    pd.read_csv(tmp_path / "sheet.csv").assign(answer="cat").to_csv(tmp_path / "back.csv", index=False)
    answer = cli("calibrate", classes, "--experts", tmp_path / "back.csv", "--key", tmp_path / "other.csv", *FAST)
    assert (answer.code, said in answer.err) == (2, True), answer.err


@pytest.mark.slow
def test_groups_of_a_calibration_must_cover_the_items(
    cli: Callable[..., Any], run: Path, tables: Path, tmp_path: Path
) -> None:
    experts = ("--experts", tables / "experts.csv")
    answer = cli("calibrate", run, *experts, "--group-col", "patient", *FAST)
    assert (answer.code, "bootstraps redraw whole groups (patient)" in answer.err) == (0, True), answer.err
    pd.read_csv(tables / "items.csv").iloc[1:].to_csv(tmp_path / "items.csv", index=False)
    some = ("--items", tmp_path / "items.csv", "--group-col", "patient")
    answer = cli("calibrate", run, *experts, *some, "--force", *FAST)
    assert (answer.code, "labelled items have no group (patient), such as 'blur-" in answer.err) == (2, True)
    answer = cli("calibrate", run, *experts, "--group-col", "ward", "--force", *FAST)
    assert (answer.code, "there is no column 'ward' in" in answer.err) == (2, True)


def test_wrong_input_of_studies_is_one_sentence(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("item,annotator,task,vote\nx,ann,t1,1\ny,bob,t1,0\nz,ann,t2,1\n")
    answer = cli("fit", tmp_path / "votes.csv", "-o", tmp_path / "run")
    assert (answer.code, "the question 't2' has one item" in answer.err) == (2, True)
    assert not (tmp_path / "run").exists()
    answer = cli("describe", "https://example.invalid/votes.csv")
    assert (answer.code, "'https://example.invalid/votes.csv' is an address" in answer.err) == (2, True)


@pytest.mark.slow
def test_counts_per_class_from_fit_to_report(cli: Callable[..., Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.multinomial(5, [0.5, 0.3, 0.2], 30), columns=["n_cat", "n_cow", "n_dog"])
    counts.insert(0, "item", [f"i{at}" for at in range(30)])
    counts.to_csv(tmp_path / "counts.csv", index=False)
    run = tmp_path / "run"
    assert cli("fit", tmp_path / "counts.csv", "--engine", "coordinate", "-o", run).code == 0
    answer = cli("baseline", tmp_path / "counts.csv")
    assert (answer.code, answer.out.splitlines()[0].split(",")[1:4]) == (0, ["p_cat", "p_cow", "p_dog"])
    soft = pd.read_csv(run / "soft_labels.csv")
    soft[["item", "p_cat", "p_cow", "p_dog"]].to_csv(tmp_path / "net.csv", index=False)
    soft.rename(columns={"label": "answer"})[["item", "answer"]].to_csv(tmp_path / "experts.csv", index=False)
    for command in (
        ("calibrate", run, "--experts", tmp_path / "experts.csv", *FAST),
        ("evaluate", run, "--scores", tmp_path / "net.csv", *FAST),
        ("report", run),
    ):
        assert cli(*command).code == 0


@pytest.mark.slow
def test_five_commands_from_findings_to_a_page(cli: Callable[..., Any], real_data: Path, tmp_path: Path) -> None:
    folder, run = real_data / "chexpert_test", tmp_path / "run"
    some = ("--group-col", "group", *FAST)
    for command in (
        ("fit", folder / "votes.csv", "--task-col", "task", "--engine", "coordinate", "-o", run),
        ("sample-experts", run, "--budget", 1400, "-o", tmp_path / "sheet.csv"),
        ("calibrate", run, "--experts", folder / "experts.csv", *some),
        ("evaluate", run, "--scores", folder / "scores.csv", "--n-vote-bootstrap", 10, *some),
        ("report", run),
    ):
        answer = cli(*command)
        assert answer.code == 0, answer.err
    thresholds = pd.read_csv(run / "labels.csv").groupby("task")["threshold"].agg(["nunique", "first"])
    assert (len(thresholds), thresholds["nunique"].max(), thresholds["first"].nunique()) == (14, 1, 14)
    assert len(pd.read_csv(tmp_path / "sheet.csv")) == 1400
