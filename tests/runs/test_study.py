"""A study on disk: a run per question, tables of all on top, results for all questions together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import InputError, OutputError, StorageError
from softgold.experts import calibrate
from softgold.runs import Study, open_run, open_study, save_study
from softgold.tables.classes import combine_classes

pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")


def simulated(seed: int) -> softgold.simulation.Simulation:
    return softgold.simulate(n_items=80, n_annotators=14, votes_per_item=6, seed=seed)


@pytest.fixture(scope="module")
def fits() -> dict[str, softgold.Fit]:
    votes = {name: simulated(seed).votes for seed, name in enumerate(("Pleural Effusion", "Ödem?"))}
    return softgold.fit_tasks(votes, engine="coordinate", n_jobs=1)


@pytest.fixture
def study(fits: dict[str, softgold.Fit], tmp_path: Path) -> Study:
    save_study(fits, tmp_path / "run", kind="tasks", source="votes.csv")
    return open_study(tmp_path / "run")


def test_each_question_is_a_run_of_its_own(study: Study, fits: dict[str, softgold.Fit]) -> None:
    assert [run.path.name for run in study.tasks.values()] == ["1-pleural-effusion", "2-dem"]
    for name, run in study.tasks.items():
        assert np.array_equal(run.fit.posterior.soft_labels().p, fits[name].posterior.soft_labels().p)
    assert study.problems() == ()


def test_questions_are_fitted_as_if_alone(fits: dict[str, softgold.Fit]) -> None:
    alone = softgold.fit(simulated(1).votes, engine="coordinate")
    assert np.array_equal(alone.posterior.soft_labels().p, fits["Ödem?"].posterior.soft_labels().p)


@pytest.mark.slow
def test_processes_give_the_same_fits(fits: dict[str, softgold.Fit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgold.models.tasks.WORTH_PROCESSES", 0.0)
    votes = {name: fit.votes for name, fit in fits.items()}
    again = softgold.fit_tasks(votes, engine="coordinate", n_jobs=2)
    for name, fit in fits.items():
        assert np.array_equal(again[name].posterior.soft_labels().p, fit.posterior.soft_labels().p)


def test_tables_on_top_have_a_task_column(study: Study) -> None:
    for file, rows in (("soft_labels.csv", 160), ("annotators.csv", 28)):
        table = pd.read_csv(study.path / file)
        assert (table.columns[0], len(table), table["task"].nunique()) == ("task", rows, 2)


@pytest.mark.slow
def test_results_are_added_for_all_questions_together(study: Study) -> None:
    results = {
        name: calibrate(run.soft_labels, simulated(seed).experts)
        for seed, (name, run) in enumerate(study.tasks.items())
    }
    written = study.add(results)
    assert [path.name for path in written] == ["labels.csv", "experts_summary.csv"]
    again = open_study(study.path)
    assert again.has("calibration")
    for name, run in again.tasks.items():
        assert run.calibration.threshold == results[name].threshold
    labels = pd.read_csv(study.path / "labels.csv")
    assert labels.groupby("task")["threshold"].nunique().tolist() == [1, 1]
    with pytest.raises(OutputError, match="exists already"):
        again.add(results)


def test_a_study_and_a_run_are_told_apart(study: Study, fits: dict[str, softgold.Fit], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has 2 tasks; use softgold\.open_study, or the run of one, .*1-pleural"):
        open_run(study.path)
    next(iter(fits.values())).save(tmp_path / "single")
    with pytest.raises(InputError, match=r"has one question; use softgold\.open_run"):
        open_study(tmp_path / "single")


@pytest.mark.parametrize("folder", ["../1-x", "/etc", "a b", ""])
def test_folders_of_a_damaged_record_are_not_followed(study: Study, folder: str) -> None:
    record = json.loads((study.path / "run.json").read_text())
    record["tasks"][0]["folder"] = folder
    (study.path / "run.json").write_text(json.dumps(record))
    with pytest.raises(StorageError, match="is not the folder of a task"):
        _ = open_study(study.path).tasks


def test_classes_are_normalised(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    rows = [
        (f"i{i}", f"a{a}", "abc"[truth[i] if rng.random() < 0.8 else rng.integers(0, 3)])
        for i in range(60)
        for a in range(6)
    ]
    study = softgold.read_study(pd.DataFrame(rows, columns=["item", "annotator", "vote"]))
    fits = softgold.fit_tasks(study.votes, engine="coordinate", n_jobs=1)
    save_study(fits, tmp_path / "run", kind="classes")
    labels = open_study(tmp_path / "run").class_labels
    np.testing.assert_allclose(labels.p.sum(axis=1), 1)
    by_class = np.stack([fits[name].posterior.soft_labels().p for name in labels.classes], axis=1)
    np.testing.assert_allclose(labels.p, by_class / by_class.sum(axis=1, keepdims=True), rtol=1e-12)
    assert (labels.label == np.array(list("abc"))[truth]).mean() > 0.9
    table = pd.read_csv(tmp_path / "run" / "soft_labels.csv")
    assert table.columns.tolist() == ["item", "p_a", "p_b", "p_c", "label", "uncertainty", "entropy", "n_votes"]


def test_classes_need_the_same_items(fits: dict[str, softgold.Fit]) -> None:
    labels = [fit.posterior.soft_labels() for fit in fits.values()]
    other = softgold.fit(simulated(2).votes.select(simulated(2).votes.item_codes < 10), model="mean")
    with pytest.raises(InputError, match="different items"):
        combine_classes({"a": labels[0], "b": other.posterior.soft_labels()})


@pytest.mark.slow
def test_fit_to_report_on_the_command_line(cli: Callable[..., Any], tmp_path: Path) -> None:
    frames = [simulated(seed).votes.to_frame().assign(task=name) for seed, name in enumerate(("one", "two"))]
    pd.concat(frames).to_csv(tmp_path / "votes.csv", index=False)
    answer = cli("fit", tmp_path / "votes.csv", "-o", tmp_path / "run", "--engine", "coordinate")
    assert answer.code == 0, answer.err
    assert "2 questions: one, two" in answer.err
    assert cli("report", tmp_path / "run").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count('data-name="one"') == page.count('data-name="two"') >= 4
    assert "All questions" in page
    answer = cli("predict", tmp_path / "run", tmp_path / "votes.csv", "-q")
    stored = pd.read_csv(tmp_path / "run" / "soft_labels.csv")
    printed = pd.read_csv(pd.io.common.StringIO(answer.out))
    np.testing.assert_allclose(printed["p"], stored["p"], rtol=1e-12)
    answer = cli("fit", tmp_path / "votes.csv", "-o", tmp_path / "two", "--resume", "--engine", "coordinate")
    assert (answer.code, "begin anew" in answer.err) == (2, True)
