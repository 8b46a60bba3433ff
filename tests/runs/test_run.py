"""A run as a value: its parts, the results added to it, and what no longer belongs together."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import OutputError, StorageError
from softgold.evaluation import evaluate
from softgold.experts import calibrate
from softgold.runs import Run, open_run

pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
FEW = {"n_bootstrap": 50, "n_vote_bootstrap": 30}  # resamples: enough to be stored and read back


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a calibration and an evaluation."""
    study = softgold.simulate(n_items=300, n_annotators=20, seed=1)
    folder = tmp_path_factory.mktemp("runs") / "run"
    softgold.fit(study.votes, engine="coordinate").save(folder)
    run = open_run(folder)
    run.add(calibrate(run.soft_labels, study.experts, n_bootstrap=50))
    run.add(evaluate(run.soft_labels, study.scores, labels=run.labels, **FEW))
    return folder


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Run:
    """A run of one's own, to change."""
    return open_run(shutil.copytree(stored, tmp_path / "run"))


def assert_equal_values(first: object, second: object) -> None:
    """Compare two dataclasses field by field, arrays and tables included."""
    assert type(first) is type(second)
    for name, one in vars(first).items():
        other = getattr(second, name)
        if isinstance(one, pd.DataFrame):
            pd.testing.assert_frame_equal(one, other, check_dtype=False)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        elif isinstance(one, pd.Index):
            assert one.tolist() == other.tolist()
        elif hasattr(one, "__dataclass_fields__"):
            assert_equal_values(one, other)
        elif isinstance(one, float) and np.isnan(one):
            assert np.isnan(other)


def test_results_come_back_as_the_same_values(run: Run) -> None:
    study = softgold.simulate(n_items=300, n_annotators=20, seed=1)
    assert_equal_values(calibrate(run.soft_labels, study.experts, n_bootstrap=50), run.calibration)
    assert_equal_values(evaluate(run.soft_labels, study.scores, labels=run.labels, **FEW), run.evaluation)
    assert run.calibration.labels.label.tolist() == run.labels.label.tolist()


def test_a_run_without_results_says_what_makes_them(tmp_path: Path) -> None:
    study = softgold.simulate(n_items=30, n_annotators=10, votes_per_item=4, seed=0)
    softgold.fit(study.votes, model="mean").save(tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert (run.has("fit"), run.has("calibration"), run.problems()) == (True, False, ())
    with pytest.raises(StorageError, match=r"has no calibration; 'softgold calibrate' makes one"):
        _ = run.calibration
    with pytest.raises(StorageError, match=r"there is no .*labels\.csv; 'softgold calibrate' writes it"):
        _ = run.labels


def test_a_second_result_needs_force(run: Run) -> None:
    with pytest.raises(OutputError, match="exists already"):
        run.add(run.calibration)
    run.add(run.calibration, force=True)


def test_nothing_is_wrong_with_a_run_as_it_was_written(run: Run) -> None:
    assert run.problems() == ()


def test_an_evaluation_of_an_older_calibration_is_a_problem(run: Run) -> None:
    labels = run.calibration.labels
    run.add(replace(run.calibration, labels=replace(labels, label=1 - labels.label)), force=True)
    assert [(notice.kind, notice.text) for notice in run.problems()] == [
        (
            "stale",
            "evaluation.json was made with another labels.csv than the one in the run: run 'softgold evaluate' again",
        )
    ]


def test_soft_labels_that_were_changed_are_a_problem_of_everything_made_from_them(run: Run) -> None:
    path = run.path / "soft_labels.csv"
    path.write_text(path.read_text() + "another,0.5,0.5,,,,,1,1,1,1,0.5,0.69\n")
    texts = [notice.text for notice in run.problems()]
    assert [text.split()[0] for text in texts] == ["soft_labels.csv", "calibration.json", "evaluation.json"]


def test_inputs_are_recorded(run: Run, tmp_path: Path) -> None:
    given = tmp_path / "experts.csv"
    given.write_text("item,label\n")
    run.add(run.calibration, inputs=[given], force=True)
    record = json.loads((run.path / "calibration.json").read_text())
    assert list(record["inputs"]) == ["experts.csv"]
    assert list(record["made_from"]) == ["soft_labels.csv"]
    assert len(record["inputs"]["experts.csv"]) == 64


def test_abstentions_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "item": ["x", "x", "y", "y", "z", "z"],
            "annotator": ["a", "b", "a", "b", "a", "c"],
            "vote": ["1", "1", "0", "", "", ""],
        }
    )
    votes = softgold.read_votes(frame)
    assert votes.n_abstentions == 3
    softgold.fit(votes, engine="coordinate").save(tmp_path / "run")
    again = open_run(tmp_path / "run").votes
    assert again.describe().rows() == votes.describe().rows()
    assert (again.n_abstentions, again.abstained_items, again.abstained_annotators) == (3, ("z",), ("c",))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("n_votes", "", r"n_votes must be a whole number above 0, got nan \(row 2\)"),
        ("n_votes", "1e300", "n_votes must be a whole number above 0"),
        ("n_votes", "many", "damaged"),
        ("sensitivity", "1.5", "sensitivity must be between 0 and 1"),
        ("ability_mean", "inf", "ability_mean must be a finite number"),
    ],
)
def test_annotators_are_checked_when_they_are_read(run: Run, column: str, value: str, said: str) -> None:
    path = run.path / "annotators.csv"
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    table.loc[0, column] = value
    table.to_csv(path, index=False)
    with pytest.raises(StorageError, match=said):
        _ = run.annotators


@pytest.mark.parametrize("name", ["labels.csv", "experts_summary.csv", "metrics.csv"])
def test_tables_that_were_changed_are_a_problem(run: Run, name: str) -> None:
    """A table that lost its last rows reads as a shorter one; its digest tells."""
    text = (run.path / name).read_text()
    (run.path / name).write_text(text[: text.rindex("\n", 0, -1) + 1])
    command = "evaluate" if name == "metrics.csv" else "calibrate"
    assert f"{name} was changed after 'softgold {command}' wrote it" in [notice.text for notice in run.problems()]


@pytest.mark.parametrize("name", ["calibration.json", "evaluation.json"])
def test_truncated_results_are_said(run: Run, name: str) -> None:
    data = (run.path / name).read_bytes()
    (run.path / name).write_bytes(data[: len(data) // 3])
    with pytest.raises(StorageError, match=name.split(".", maxsplit=1)[0]):
        _ = run.evaluation if name == "evaluation.json" else run.calibration


def test_a_fit_prints_as_a_few_lines(run: Run) -> None:
    lines = repr(run.fit).splitlines()
    assert len(lines) <= 8
    assert lines[0].split() == ["model", "two-class", "(coordinate)"]
    assert f"{run.votes.n_votes:,} votes on 300 items by 20 annotators" in repr(run.fit)
    page = run.fit._repr_html_()
    assert page.count("<tr>") == len(lines)
    assert repr(run.fit.posterior) == "CrowdPosterior: 300 items, 20 annotators"
    study = softgold.simulate(n_items=30, n_annotators=10, votes_per_item=4)
    for value in (run.votes, run.calibration.labels, study, study.scores):
        assert len(repr(value)) < 100
    assert repr(run.calibration).startswith(f"Calibration: threshold {run.calibration.threshold:.4g} from 300 labelled")
    assert len(repr(run.soft_labels)) < 100
