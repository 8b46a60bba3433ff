"""`softgold evaluate`: what it prints and writes, and the sentences for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softgold.metrics import soft_auroc

N = 150
FAST = ("--n-bootstrap", 40, "--n-vote-bootstrap", 30)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory as far as an evaluation reads it."""
    rng = np.random.default_rng(1)
    n_positive = rng.integers(0, 8, N)
    p = (n_positive + 0.5) / 8
    frame = pd.DataFrame(
        {"item": [f"i{i}" for i in range(N)], "p": p, "expected_vote": 1 - p, "n_votes": 7, "n_positive": n_positive}
    )
    folder = tmp_path / "run"
    folder.mkdir()
    frame.to_csv(folder / "soft_labels.csv", index=False)
    return folder


@pytest.fixture
def scores(run: Path, tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    p = pd.read_csv(run / "soft_labels.csv")["p"].to_numpy()
    frame = pd.DataFrame(np.clip(p[:, None] + rng.normal(0, 0.3, (N, 3)), 0, 1), columns=["x", "y", "z"])
    frame.insert(0, "item", [f"i{i}" for i in range(N)])
    path = tmp_path / "scores.csv"
    frame.to_csv(path, index=False)
    return path


def calibrated(run: Path, threshold: float = 0.7) -> None:
    frame = pd.read_csv(run / "soft_labels.csv")
    labels = frame[["item", "p"]].assign(
        label=(frame["p"] >= threshold).astype(int), p_calibrated=frame["p"] ** 2, threshold=threshold
    )
    labels.to_csv(run / "labels.csv", index=False)


def test_it_prints_a_table_and_writes_two_files(cli: Callable, run: Path, scores: Path) -> None:
    answer = cli("evaluate", run, "--scores", scores, *FAST)
    assert answer.code == 0
    assert answer.out == ""
    assert "hard labels: p >= 0.5" in answer.err
    assert "soft AUROC" in answer.err
    assert "stability of the AUROC ranking under resampled votes" in answer.err
    metrics = pd.read_csv(run / "metrics.csv")
    assert set(metrics["model"]) == {"x", "y", "z"}
    p, x = pd.read_csv(run / "soft_labels.csv")["p"], pd.read_csv(scores)["x"]
    row = metrics[(metrics["metric"] == "soft_auroc") & (metrics["model"] == "x")].iloc[0]
    assert row["value"] == pytest.approx(soft_auroc(p, x))
    stored = json.loads((run / "evaluation.json").read_text())
    assert stored["models"] == ["x", "y", "z"]
    assert stored["settings"]["n_bootstrap"] == 40


def test_json_on_standard_output_is_what_is_stored(cli: Callable, run: Path, scores: Path) -> None:
    answer = cli("evaluate", run, "--scores", scores, *FAST, "--json")
    stored = json.loads((run / "evaluation.json").read_text())
    own = {"format", "version", "softgold", "made_from", "files", "inputs"}
    assert json.loads(answer.out) == {key: value for key, value in stored.items() if key not in own}
    assert stored["inputs"] == {scores.name: sha256(scores.read_bytes()).hexdigest()}
    assert stored["made_from"] == {"soft_labels.csv": sha256((run / "soft_labels.csv").read_bytes()).hexdigest()}


def test_released_labels_are_the_hard_ones(cli: Callable, run: Path, scores: Path) -> None:
    calibrated(run)
    answer = cli("evaluate", run, "--scores", scores, *FAST, "--soft", "p_calibrated")
    assert "soft labels: p_calibrated; hard labels: labels released at p >= 0.7000" in answer.err
    stored = json.loads((run / "evaluation.json").read_text())
    assert stored["soft"] == "p_calibrated"
    p = pd.read_csv(run / "soft_labels.csv")["p"]
    assert stored["tasks"][0]["base_rate"] == (p >= 0.7).mean()
    assert stored["tasks"][0]["soft_base_rate"] == pytest.approx((p**2).mean())


def test_labels_of_ones_own(cli: Callable, run: Path, scores: Path, tmp_path: Path) -> None:
    own = pd.DataFrame({"item": [f"i{i}" for i in range(N)], "label": [i % 2 for i in range(N)]})
    own.to_csv(tmp_path / "own.csv", index=False)
    assert (
        "hard labels: labels given"
        in cli("evaluate", run, "--scores", scores, *FAST, "--labels", tmp_path / "own.csv").err
    )


def test_soft_labels_of_any_origin(
    cli: Callable, run: Path, scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd.read_csv(run / "soft_labels.csv").rename(columns={"p": "mine"}).to_csv(tmp_path / "soft.csv", index=False)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    answer = cli("evaluate", "--soft-labels", tmp_path / "soft.csv", "--scores", scores, "--soft", "mine", *FAST)
    assert answer.code == 0
    assert sorted(path.name for path in elsewhere.iterdir()) == ["evaluation.json", "metrics.csv"]
    assert json.loads((elsewhere / "evaluation.json").read_text())["soft"] == "mine"


def test_tasks(cli: Callable, run: Path, scores: Path, tmp_path: Path) -> None:
    items = pd.DataFrame({"item": [f"i{i}" for i in range(N)], "finding": ["a" if i < 70 else "b" for i in range(N)]})
    items.to_csv(tmp_path / "items.csv", index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST, "--task-col", "finding")
    assert answer.code == 0
    assert "a: 70 items" in answer.err
    assert "average of 2 tasks" in answer.err
    assert pd.read_csv(run / "metrics.csv")["task"].unique().tolist() == ["a", "b", "average"]


def test_names_are_shown_as_they_are(cli: Callable, run: Path, scores: Path) -> None:
    frame = pd.read_csv(scores).rename(columns={"x": "[bold]x[/bold]"})
    frame.to_csv(scores, index=False)
    assert "[bold]x[/bold]" in cli("evaluate", run, "--scores", scores, *FAST).err


def test_what_exists_is_kept(cli: Callable, run: Path, scores: Path) -> None:
    assert cli("evaluate", run, "--scores", scores, *FAST, "--quiet").code == 0
    before = (run / "metrics.csv").read_bytes()
    again = cli("evaluate", run, "--scores", scores, *FAST, "--seed", 3)
    assert again.code == 2
    assert "exists already; give --force" in again.err
    assert (run / "metrics.csv").read_bytes() == before
    assert cli("evaluate", run, "--scores", scores, *FAST, "--seed", 3, "--force").code == 0
    assert (run / "metrics.csv").read_bytes() != before


def replaced(frame: pd.DataFrame, cell: str) -> pd.DataFrame:
    frame = frame.astype({"y": object})
    frame.loc[3, "y"] = cell
    return frame


BAD = {
    "unknown items": (
        lambda t: pd.concat([t, t.tail(2).assign(item=["new1", "new2"])]),
        "2 of 152 scored items have no soft label, the first is 'new1'",
    ),
    "missing items": (lambda t: t.iloc[:-5], "5 of 150 items have no score of at least one model, 5 of them of none"),
    "an empty cell": (lambda t: replaced(t, ""), "1 of 150 items have no score of at least one model, 0 of them"),
    "nan": (lambda t: replaced(t, "NaN"), "give --missing drop"),
    "infinite": (
        lambda t: replaced(t, "inf"),
        "row 4 (line 5), column 'y': a score must be a finite number, got 'inf'",
    ),
    "text": (lambda t: replaced(t, "high"), "a score must be a finite number, got 'high'"),
    "duplicate models": (lambda t: t.set_axis(["item", "x", "y", "x"], axis=1), "model"),
    "duplicate items": (lambda t: pd.concat([t, t.head(1)]), "the item 'i0' is duplicated"),
    "one item": (lambda t: t.head(1), "149 of 150 items have no score"),
    "no model": (lambda t: t[["item"]], "model"),
}


@pytest.mark.parametrize("change", BAD)
def test_bad_scores(cli: Callable, run: Path, scores: Path, change: str) -> None:
    edit, sentence = BAD[change]
    edit(pd.read_csv(scores)).to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST)
    assert answer.code == 2
    assert sentence in answer.err
    assert answer.err.startswith("error: ")
    assert "Traceback" not in answer.err
    assert sorted(path.name for path in run.iterdir()) == ["soft_labels.csv"]


def test_one_item_is_too_few(cli: Callable, run: Path, scores: Path) -> None:
    pd.read_csv(scores).head(1).to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST, "--missing", "drop")
    assert answer.code == 2
    assert "at least two items with a score, got 1" in answer.err


def test_missing_items_can_be_dropped(cli: Callable, run: Path, scores: Path) -> None:
    pd.read_csv(scores).iloc[:-5].to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST, "--missing", "drop")
    assert answer.code == 0
    assert "note: 5 of 150 items have no score" in answer.err
    assert "145 items" in answer.err


def test_a_constant_model_is_said(cli: Callable, run: Path, scores: Path) -> None:
    pd.read_csv(scores).assign(y=0.3).to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST)
    assert answer.code == 0
    assert "note: the same score for every item, which ranks nothing (AUROC 0.5): y" in answer.err


def test_scores_that_are_no_probabilities(cli: Callable, run: Path, scores: Path) -> None:
    pd.read_csv(scores).assign(y=lambda t: 10 * t["y"] - 5).to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST)
    assert answer.code == 0
    assert "note: scores outside [0, 1], so no Brier score, log loss or ECE: y" in answer.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give a run directory or --soft-labels FILE"),
        (("RUN", "--soft-labels", "x.csv"), "one of the two"),
        (("nowhere",), "there is no run nowhere"),
        (("RUN", "--soft", "p_calibrated"), "it was not calibrated; 'softgold calibrate' does that"),
        (("RUN", "--soft", "b_mean"), "--soft must be one of"),
        (("RUN", "--task-col", "task"), "give --items FILE"),
        (("RUN", "--level", "2"), "level"),
        (("RUN", "--n-bootstrap", "0"), "n_bootstrap must be a whole number of at least 1"),
        (("RUN", "--k", "0"), "k must be a whole number"),
    ],
)
def test_bad_usage(cli: Callable, run: Path, scores: Path, arguments: tuple[str, ...], sentence: str) -> None:
    filled = [run if argument == "RUN" else argument for argument in arguments]
    answer = cli("evaluate", *filled, "--scores", scores)
    assert answer.code == 2
    assert sentence in answer.err


def test_labels_of_several_experts_are_no_hard_labels(cli: Callable, run: Path, scores: Path, tmp_path: Path) -> None:
    pd.DataFrame({"item": ["i0", "i0"], "expert": ["a", "b"], "label": [0, 1]}).to_csv(
        tmp_path / "two.csv", index=False
    )
    answer = cli("evaluate", run, "--scores", scores, "--labels", tmp_path / "two.csv")
    assert answer.code == 2
    assert "labels of 2 experts" in answer.err


def test_a_folder_is_made_if_need_be(cli: Callable, run: Path, scores: Path, tmp_path: Path) -> None:
    answer = cli("evaluate", run, "--scores", scores, *FAST, "-o", tmp_path / "new" / "folder")
    assert answer.code == 0
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["evaluation.json", "metrics.csv"]
    answer = cli("evaluate", run, "--scores", scores, *FAST, "-o", scores)
    assert answer.code == 2
    assert "scores.csv is a file; the results need a folder" in answer.err


def test_places_ceilings_and_leads_are_printed(cli: Callable, run: Path, scores: Path) -> None:
    pd.read_csv(scores).assign(y=lambda t: t["x"]).to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST)
    # Equal models share a place.
    assert answer.err.count(" 2=") + answer.err.count(" 1=") == 2 * 4
    assert ".5." not in answer.err
    assert "ceiling" in answer.err
    p = pd.read_csv(run / "soft_labels.csv")["p"]
    assert f"{soft_auroc(p, p):.3f}" in answer.err
    assert "cannot be told apart by" in answer.err


def test_one_model_has_no_r_squared_and_no_changes(cli: Callable, run: Path, scores: Path) -> None:
    pd.read_csv(scores)[["item", "x"]].to_csv(scores, index=False)
    answer = cli("evaluate", run, "--scores", scores, *FAST)
    assert answer.code == 0
    assert "nan" not in answer.err
    assert "x is the only model with a value of AUROC" in answer.err
    assert "change places" not in answer.err


class TestGroups:
    items = tuple(f"i{i}" for i in range(N))
    patients = tuple(f"p{i // 3}" for i in range(N))

    def check(self, cli: Callable, run: Path, scores: Path, *options: object) -> None:
        answer = cli("evaluate", run, "--scores", scores, *FAST, "--group-col", "patient", *options)
        assert answer.code == 0, answer.err
        assert "40 resamples of the 50 groups (patient)" in answer.err
        assert json.loads((run / "evaluation.json").read_text())["settings"]["n_groups"] == 50

    def test_in_the_items(self, cli: Callable, run: Path, scores: Path, tmp_path: Path) -> None:
        table = pd.DataFrame({"item": self.items, "patient": self.patients})
        table.to_csv(tmp_path / "groups.csv", index=False)
        self.check(cli, run, scores, "--items", tmp_path / "groups.csv")

    def test_beside_the_scores(self, cli: Callable, run: Path, scores: Path) -> None:
        table = pd.DataFrame({"item": self.items, "patient": self.patients})
        table.to_csv(scores.parent / "items.csv", index=False)
        self.check(cli, run, scores)

    def test_in_the_soft_labels(self, cli: Callable, run: Path, scores: Path) -> None:
        path = run / "soft_labels.csv"
        pd.read_csv(path).assign(patient=list(self.patients)).to_csv(path, index=False)
        self.check(cli, run, scores)

    def test_in_the_scores(self, cli: Callable, run: Path, scores: Path) -> None:
        pd.read_csv(scores).assign(patient=list(self.patients)).to_csv(scores, index=False)
        self.check(cli, run, scores)
        assert json.loads((run / "evaluation.json").read_text())["models"] == ["x", "y", "z"]

    def test_what_is_refused(self, cli: Callable, run: Path, scores: Path, tmp_path: Path) -> None:
        answer = cli("evaluate", run, "--scores", scores, *FAST, "--group-col", "patient")
        assert answer.code == 2
        assert "there is no column 'patient' in" in answer.err
        pd.DataFrame({"item": self.items[:-9], "patient": self.patients[:-9]}).to_csv(tmp_path / "few.csv", index=False)
        answer = cli(
            "evaluate", run, "--scores", scores, *FAST, "--group-col", "patient", "--items", tmp_path / "few.csv"
        )
        assert answer.code == 2
        assert "9 scored items have no group, the first is 'i141'" in answer.err
        assert not (run / "evaluation.json").exists()
