"""The commands around experts: sample-experts, calibrate, agreement. What they write, and when they write nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softgold.agreement import NominalLabels, cohen_kappas, fleiss_kappa
from softgold.errors import DataWarning
from softgold.readers import read_experts

N = 300
P = np.round(np.linspace(0, 1, N), 6)
ITEMS = [f"{number:03d}" for number in range(N)]
WRITTEN = ["calibration.json", "experts_summary.csv", "labels.csv"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    votes = np.arange(N) % 12 + 1
    frame = {"item": ITEMS, "p": P, "n_votes": votes, "n_positive": np.round(votes * P)}
    pd.DataFrame(frame).to_csv(folder / "soft_labels.csv", index=False)
    return folder


def expert_frame(**changes: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    answers = [(P > 0.7) ^ (rng.random(N) < 0.02) for _ in range(3)]
    frame = {
        "item": ITEMS * 3,
        "annotator": np.repeat(["ann", "bob", "cem"], N),
        "label": np.concatenate(answers).astype(int),
    }
    return pd.DataFrame({**frame, **changes})


@pytest.fixture
def experts(tmp_path: Path) -> Path:
    path = tmp_path / "experts.csv"
    expert_frame().to_csv(path, index=False)
    return path


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_calibrate_writes_three_files_beside_the_soft_labels(cli: Callable, run: Path, experts: Path) -> None:
    answer = cli("calibrate", run, "--experts", experts, "--bins", 10, "--n-bootstrap", 100)
    assert answer.code == 0, answer.err
    assert contents(run) == sorted([*WRITTEN, "soft_labels.csv"])
    assert answer.out == ""
    assert "threshold 0.69" in answer.err
    labels = pd.read_csv(run / "labels.csv", dtype={"item": str})
    assert labels.columns.tolist() == [
        "item",
        "label",
        "p",
        "p_calibrated",
        "p_calibrated_lo",
        "p_calibrated_hi",
        "threshold",
    ]
    assert labels["item"].tolist() == ITEMS
    np.testing.assert_array_equal(labels["p"], P)
    np.testing.assert_array_equal(labels["label"], (labels["threshold"] <= P).astype(int))
    assert labels["p_calibrated"].between(0, 1, inclusive="neither").all()
    assert labels["p_calibrated"].is_monotonic_increasing
    summary = pd.read_csv(run / "experts_summary.csv")
    assert summary["expert"].tolist() == ["ann", "bob", "cem"]
    document = json.loads((run / "calibration.json").read_text())
    assert document["threshold"] == labels["threshold"].iloc[0]
    assert document["rule"]["name"] == "map"
    assert f"agreement with the experts {100 * document['after']['agreement']:.1f} %" in answer.err
    assert f"{100 * document['before']['agreement']:.1f} % at 0.5 (cross-validated, weighted)" in answer.err
    assert f"for the data sheet: {document['error_rates']['sentence']}" in answer.err
    assert {len(column) for column in document["bins"].values()} == {10}
    assert document["detectors"]["min_votes"]["min_votes"] == [1, 3, 5, 7, 10, 15]


def test_calibrate_json_is_the_answer_on_standard_output(cli: Callable, run: Path, experts: Path) -> None:
    answer = cli("calibrate", run, "--experts", experts, "--rule", "f1", "--n-bootstrap", 50, "--json")
    assert answer.code == 0, answer.err
    stored = json.loads((run / "calibration.json").read_text())
    printed = json.loads(answer.out)
    assert printed["threshold"] == stored["threshold"]
    assert printed["rule"]["name"] == "f1"


@pytest.mark.slow
def test_calibrate_is_reproducible(cli: Callable, run: Path, experts: Path) -> None:
    texts = []
    for _ in range(2):
        assert cli("calibrate", run, "--experts", experts, "--n-bootstrap", 50, "--force").code == 0
        texts.append((run / "calibration.json").read_bytes())
    assert texts[0] == texts[1]


def test_calibrate_does_not_replace_without_force(cli: Callable, run: Path, experts: Path) -> None:
    (run / "labels.csv").write_text("mine")
    answer = cli("calibrate", run, "--experts", experts, "--n-bootstrap", 50)
    assert answer.code == 2
    assert "exists already" in answer.err
    assert contents(run) == ["labels.csv", "soft_labels.csv"]
    assert (run / "labels.csv").read_text() == "mine"
    assert cli("calibrate", run, "--experts", experts, "--n-bootstrap", 50, "--force").code == 0


@pytest.mark.parametrize("rule", ["map", "bins", "paper", "changepoint", "largest_jump", "onset", "f1", "youden"])
def test_every_rule_runs(cli: Callable, run: Path, experts: Path, rule: str) -> None:
    answer = cli("calibrate", run, "--experts", experts, "--rule", rule, "--n-bootstrap", 20, "--json")
    assert answer.code == 0, answer.err
    assert 0 < json.loads(answer.out)["threshold"] < 1


@pytest.mark.parametrize("rule", ["precision", "recall"])
def test_target_rules_run(cli: Callable, run: Path, experts: Path, rule: str) -> None:
    command = ("calibrate", run, "--experts", experts, "--rule", rule, "--target", 0.8, "--n-bootstrap", 20, "--json")
    answer = cli(*command)
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["rule"] == {"name": rule, "target": 0.8, "of": "all", "cut": 0.5, "map": "logit"}


@pytest.mark.slow
def test_costs_move_the_threshold(cli: Callable, run: Path, experts: Path) -> None:
    thresholds = []
    for cost in ("1:1", "1:9", "9:1"):
        answer = cli("calibrate", run, "--experts", experts, "--cost", cost, "--n-bootstrap", 20, "--json", "--force")
        assert answer.code == 0, answer.err
        thresholds.append(json.loads(answer.out)["threshold"])
    assert thresholds[1] < thresholds[0] < thresholds[2]


@pytest.mark.slow
def test_worse_labels_are_said_first_and_strict_writes_nothing(cli: Callable, run: Path, tmp_path: Path) -> None:
    """A rate that rises from 0 to 30 %: labels from the change on are mostly wrong."""
    path = tmp_path / "experts.csv"
    answers = (np.random.default_rng(0).random(N) < 0.3) & (P > 0.2)
    pd.DataFrame({"item": ITEMS, "answer": np.where(answers, "yes", "no")}).to_csv(path, index=False)
    command = ("calibrate", run, "--experts", path, "--rule", "changepoint", "--n-bootstrap", 20)
    refused = cli(*command, "--strict")
    assert refused.code == 2
    assert "agree less with the experts than labels cut at 0.5" in refused.err
    assert contents(run) == ["soft_labels.csv"]
    answer = cli(*command)
    assert answer.code == 0
    assert answer.err.startswith("warning: labels at the threshold")
    assert cli("calibrate", run, "--experts", path, "--n-bootstrap", 20, "--strict", "--force").code == 0


def test_the_path_from_sample_to_labels(cli: Callable, run: Path, tmp_path: Path) -> None:
    context = tmp_path / "items.csv"
    pd.DataFrame({"item": ITEMS, "image": [f"{item}.png" for item in ITEMS]}).to_csv(context, index=False)
    sheet = tmp_path / "sheet.csv"
    answer = cli("sample-experts", run, "-o", sheet, "--budget", 120, "--context", context, "--seed", 5, "--json")
    assert answer.code == 0, answer.err
    key, told = tmp_path / "sheet.key.csv", json.loads(answer.out)
    assert (told["sheet"], told["key"], told["n_items"]) == (str(sheet), str(key), 120)
    assert sum(told["strata"]["sampled"]) == 120
    assert told["expected"]["threshold_low"] < 0.5 < told["expected"]["threshold_high"]
    assert "120 labels per expert; if the soft labels are right, expect the 95 % interval" in answer.err
    items = pd.read_csv(sheet, dtype=str)
    assert items.columns.tolist() == ["item", "image", "answer"]
    truth = dict(zip(ITEMS, P > 0.6, strict=True))
    filled = []
    for name, separator in (("ann", ","), ("bob", ";")):
        path = tmp_path / f"{name}.csv"
        said = ["yes" if truth[item] else "no" for item in items["item"]]
        items.assign(answer=["unsure", *said[1:]]).to_csv(path, index=False, sep=separator)
        filled += ["--experts", path]
    answer = cli("calibrate", run, *filled, "--key", key, "--n-bootstrap", 50)
    assert answer.code == 0, answer.err
    assert "2 answers are unsure and count as no label: ann 1, bob 1" in answer.err
    summary = pd.read_csv(run / "experts_summary.csv")
    assert summary["expert"].tolist() == ["ann", "bob"]
    assert summary["n_unsure"].tolist() == [1, 1]
    document = json.loads((run / "calibration.json").read_text())
    assert sum(document["bins"]["labelled"]) == 119
    assert document["settings"]["scheme"] == "neyman"
    assert document["threshold"] == pytest.approx(0.6, abs=0.03)


def test_workbooks_are_written_and_read(cli: Callable, run: Path, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    sheet = tmp_path / "ann.xlsx"
    assert cli("sample-experts", run, "-o", sheet, "--budget", 40, "--scheme", "paper").code == 0
    book = load_workbook(sheet)
    for row in range(2, 42):
        book.active.cell(row, 2).value = "yes" if P[int(book.active.cell(row, 1).value)] > 0.5 else "no"
    book.save(sheet)
    command = ("calibrate", run, "--experts", sheet, "--key", tmp_path / "ann.key.csv", "--n-bootstrap", 20)
    answer = cli(*command, "--rule", "paper")
    assert answer.code == 0, answer.err
    assert sum(json.loads((run / "calibration.json").read_text())["bins"]["labelled"]) == 40


def test_the_papers_rule_needs_the_papers_sheet(cli: Callable, run: Path, experts: Path, tmp_path: Path) -> None:
    assert cli("sample-experts", run, "-o", tmp_path / "sheet.csv", "--budget", 40).code == 0
    answer = cli("calibrate", run, "--experts", experts, "--key", tmp_path / "sheet.key.csv", "--rule", "paper")
    assert answer.code == 2
    assert "rule 'paper' needs a sheet of 'sample-experts --scheme paper'" in answer.err


def test_a_sheet_without_labels_leaves_soft_labels_as_they_are(cli: Callable, run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert cli("sample-experts", run, "-o", sheet, "--budget", 20).code == 0
    answer = cli("calibrate", run, "--experts", sheet, "--key", tmp_path / "sheet.key.csv", "--n-bootstrap", 20)
    assert answer.code == 0, answer.err
    assert "there are no expert labels" in answer.err
    assert "agreement with the experts unknown; unknown at 0.5" in answer.err
    labels = pd.read_csv(run / "labels.csv")
    np.testing.assert_allclose(labels["p_calibrated"], P)


def test_sheet_comes_from_a_file_of_soft_labels_too(cli: Callable, run: Path, tmp_path: Path) -> None:
    target = tmp_path / "sheet.tsv"
    answer = cli("sample-experts", run / "soft_labels.csv", "-o", target, "--budget", 8)
    assert answer.code == 0, answer.err
    assert (tmp_path / "sheet.key.csv").is_file()
    assert "0." not in target.read_text()


def test_detectors_are_judged(cli: Callable, run: Path, experts: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    pd.DataFrame({"item": ITEMS, "net": P**2, "coin": np.random.default_rng(0).random(N)}).to_csv(scores, index=False)
    answer = cli("calibrate", run, "--experts", experts, "--scores", scores, "--n-bootstrap", 50, "--json")
    assert answer.code == 0, answer.err
    assert set(json.loads(answer.out)["detectors"]["bootstrap"]["detector"]) == {"soft label", "net", "coin"}


BAD_EXPERTS = [
    (expert_frame(item=[*(ITEMS * 3)[:-1], "who"]), "experts answered 1 items that are not in the soft labels: 'who'"),
    (expert_frame(item=["a" + item for item in ITEMS * 3]), "none of the 300 items that experts answered"),
    (
        expert_frame(label=["2"] + ["1"] * (3 * N - 1)),
        "an answer must be yes or no (1 or 0), unsure, or empty; got '2'",
    ),
    (expert_frame().drop(columns="label"), "no vote column"),
    (pd.concat([expert_frame(), expert_frame(label=1)]), "gave item '000' different answers"),
]


@pytest.mark.parametrize(("frame", "message"), BAD_EXPERTS, ids=[message[:30] for _, message in BAD_EXPERTS])
def test_bad_experts_are_one_sentence_and_nothing_written(
    cli: Callable, run: Path, tmp_path: Path, frame: pd.DataFrame, message: str
) -> None:
    path = tmp_path / "bad.csv"
    frame.to_csv(path, index=False)
    answer = cli("calibrate", run, "--experts", path, "--n-bootstrap", 50)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert len([line for line in answer.err.splitlines() if line.startswith("error:")]) == 1
    assert contents(run) == ["soft_labels.csv"]


def test_unknown_items_can_be_ignored(cli: Callable, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "more.csv"
    more = pd.DataFrame({"item": ["who"] * 3, "annotator": ["ann", "bob", "cem"], "label": 1})
    pd.concat([expert_frame(), more]).to_csv(path, index=False)
    answer = cli("calibrate", run, "--experts", path, "--ignore-unknown", "--n-bootstrap", 50)
    assert answer.code == 0, answer.err
    assert "warning: 1 items that experts answered are unknown and were left out" in answer.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bins", 1], "bins must be a whole number of at least 2"),
        (["--cost", "one:two"], "--cost must be two numbers, FP:FN"),
        (["--cost", "0:1"], "cost must be two positive numbers"),
        (["--rule", "f1", "--cost", "1:2"], "rule 'f1' takes no cost"),
        (["--rule", "paper", "--bins", 10], "rule 'paper' has 20 rank bins"),
        (["--rule", "elbow"], "elbow"),
        (["--rule", "precision"], "rule 'precision' needs a target"),
        (["--target", 0.9], "rule 'map' takes no target"),
        (["--rule", "precision", "--target", 0.9999], "no threshold reaches a precision of 0.9999"),
        (["--level", 2], "level must lie in (0, 1)"),
        (["--n-bootstrap", 0], "n_bootstrap must be a whole number"),
        (["--key", "nowhere.csv"], "cannot read"),
        (["--key", "x.csv", "--bins", 5], "leave them out"),
        (["--scores", "nowhere.csv"], "cannot read"),
    ],
)
def test_bad_options_are_one_sentence_and_nothing_written(
    cli: Callable, run: Path, experts: Path, options: list[object], message: str
) -> None:
    answer = cli("calibrate", run, "--experts", experts, *options)
    assert answer.code == 2
    assert message in answer.err
    assert contents(run) == ["soft_labels.csv"]


def test_run_must_be_a_directory_with_soft_labels(cli: Callable, run: Path, experts: Path, tmp_path: Path) -> None:
    answer = cli("calibrate", tmp_path / "nowhere", "--experts", experts)
    assert (answer.code, "there is no run" in answer.err) == (2, True)
    (run / "soft_labels.csv").unlink()
    answer = cli("calibrate", run, "--experts", experts)
    assert (answer.code, "soft_labels.csv" in answer.err) == (2, True)
    assert contents(run) == []


def test_broken_key_names_its_file(cli: Callable, run: Path, experts: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.csv"
    key.write_text("item,bin\n000,0\n")
    answer = cli("calibrate", run, "--experts", experts, "--key", key)
    assert answer.code == 2
    assert f"{key}: a key needs the columns" in answer.err


def test_several_files_may_have_a_silent_expert(cli: Callable, run: Path, experts: Path, tmp_path: Path) -> None:
    other = tmp_path / "dan.csv"
    pd.DataFrame({"item": ITEMS[:2], "annotator": ["dan", "eve"], "label": ["1", ""]}).to_csv(other, index=False)
    answer = cli("calibrate", run, "--experts", experts, "--experts", other, "--n-bootstrap", 20)
    assert answer.code == 0, answer.err
    summary = pd.read_csv(run / "experts_summary.csv").set_index("expert")
    assert summary["n_labels"].to_dict() == {"ann": N, "bob": N, "cem": N, "dan": 1, "eve": 0}


@pytest.mark.parametrize(
    "options", [["--budget", 0], ["--scheme", "rank"], ["--key", "sheet.csv"], ["--context", "nowhere.csv"]]
)
def test_bad_samples_write_nothing(
    cli: Callable, run: Path, tmp_path: Path, options: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    assert cli("sample-experts", run, "-o", "sheet.csv", *options).code == 2
    assert contents(tmp_path) == before


def test_sample_does_not_replace_without_force(cli: Callable, run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert cli("sample-experts", run, "-o", sheet, "--budget", 20).code == 0
    sheet.unlink()
    assert cli("sample-experts", run, "-o", sheet, "--budget", 20).code == 2
    assert not sheet.exists()
    assert cli("sample-experts", run, "-o", sheet, "--budget", 20, "--force").code == 0


def test_agreement_of_experts_in_words_and_json(cli: Callable, experts: Path, tmp_path: Path) -> None:
    answer = cli("agreement", experts, "--n-bootstrap", 100)
    assert answer.code == 0, answer.err
    assert "almost perfect (Landis and Koch), reliable (Krippendorff)" in answer.out
    assert "ann and bob on 300 items" in answer.out
    pairs = tmp_path / "pairs.csv"
    answer = cli("agreement", experts, "--n-bootstrap", 100, "--pairs", pairs, "--json")
    document = json.loads(answer.out)
    assert document["n_raters"] == 3
    assert document["interval"]["low"] < document["alpha"] < document["interval"]["high"]
    assert pd.read_csv(pairs)["kappa"].tolist() == pytest.approx([row["kappa"] for row in document["kappas"]])


def test_agreement_of_many_raters_is_summed_up(cli: Callable, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    frame = expert_frame(annotator=[f"w{number % 40}" for number in range(3 * N)])
    frame.to_csv(path, index=False)
    answer = cli("agreement", path, "--duplicates", "first", "--n-bootstrap", 50)
    assert answer.code == 0, answer.err
    with pytest.warns(DataWarning, match="the same label more than once"):
        labels = NominalLabels.from_votes(read_experts(path, duplicates="first").table)
    kappas = cohen_kappas(labels)["kappa"]
    assert f"median {kappas.median():.3f} over {len(kappas):,} pairs of raters" in answer.out
    assert f"Fleiss' kappa         {fleiss_kappa(labels):.3f}" in answer.out


def test_agreement_of_nominal_labels_wide_and_long(cli: Callable, tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("item,ann,bob\n1,cat,cat\n2,dog,cow\n3,cow,cow\n4,,dog\n")
    answer = cli("agreement", wide, "--nominal", "--wide", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["percent"] == pytest.approx(2 / 3)
    long = tmp_path / "long.csv"
    long.write_text("item,rater,label\n1,ann,cat\n1,bob,cat\n2,ann,dog\n2,bob,cow\n3,ann,cow\n3,bob,cow\n4,bob,dog\n")
    assert json.loads(cli("agreement", long, "--nominal", "--json").out)["alpha"] == document["alpha"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("item,rater,label\n1,ann,cat\n1,bob,dog\n", [], "a vote must be 0 or 1"),
        ("item,label\n1,0\n2,1\n", [], "one rater only"),
        ("item,rater,label\n1,ann,1\n1,ann,0\n2,bob,1\n", [], "different labels by the same annotator"),
        ("item,rater,label\n1,ann,1\n1,bob,0\n", ["--nominal", "--duplicates", "mean"], "does not work with --nominal"),
        ("item,rater,label\n1,ann,1\n1,ann,0\n2,bob,1\n", ["--duplicates", "mean"], "averaged"),
    ],
)
def test_bad_agreement_is_one_sentence(
    cli: Callable, tmp_path: Path, text: str, options: list[str], message: str
) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    pairs = tmp_path / "pairs.csv"
    answer = cli("agreement", path, "--pairs", pairs, *options)
    assert answer.code == 2
    assert message in answer.err
    assert not pairs.exists()


@pytest.mark.slow
def test_calibrate_and_the_rest_on_real_readers(cli: Callable, real_data: Path, tmp_path: Path) -> None:
    """Relation extraction: 466 crowd workers, one medical student as the expert on a third of the sentences."""
    folder = tmp_path / "run"
    folder.mkdir()
    votes = real_data / "relex_cause" / "votes.csv"
    assert cli("baseline", votes, "--duplicates", "all", "-o", folder / "soft_labels.csv").code == 0
    shutil.copy(real_data / "relex_cause" / "truth.csv", tmp_path / "expert.csv")
    answer = cli("calibrate", folder, "--experts", tmp_path / "expert.csv", "--n-bootstrap", 100, "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert sum(document["bins"]["labelled"]) == 975
    assert document["after"]["agreement"] > 0.8
    assert "one expert: how far experts agree is unknown" in answer.err


@pytest.mark.slow
def test_one_finding_of_chest_radiographs(cli: Callable, real_data: Path, tmp_path: Path) -> None:
    """Three radiologists vote, five others are the experts, on 500 studies."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("votes", "experts"):
        frame = pd.read_csv(real_data / "chexpert_test" / f"{name}.csv", dtype=str)
        frame[frame["item"].str.endswith("|Pleural Effusion")].to_csv(tmp_path / f"{name}.csv", index=False)
    assert cli("baseline", tmp_path / "votes.csv", "-o", folder / "soft_labels.csv").code == 0
    answer = cli("calibrate", folder, "--experts", tmp_path / "experts.csv", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert sum(document["bins"]["labelled"]) == 500
    assert [interval["exact"] for interval in document["intervals"] if interval["source"] == "panel"] == [True]
    assert document["after"]["agreement"] >= document["before"]["agreement"] >= 0.88


def test_a_sheet_that_no_spreadsheet_runs_and_its_answers(cli: Callable, tmp_path: Path) -> None:
    run = tmp_path / "formulas"
    run.mkdir()
    ids = [f"=SUM({i})" for i in range(30)]
    pd.DataFrame({"item": ids, "p": np.linspace(0.01, 0.99, 30)}).to_csv(run / "soft_labels.csv", index=False)
    sheet = tmp_path / "sheet.csv"
    assert cli("sample-experts", run, "-o", sheet, "--budget", 10, "--excel-safe").code == 0
    drawn = pd.read_csv(sheet, dtype="str")
    assert drawn["item"].str.startswith("'=").all()
    drawn.assign(answer="yes").to_csv(sheet, index=False)
    answer = cli("calibrate", run, "--experts", sheet, "--key", tmp_path / "sheet.key.csv", "--n-bootstrap", 50)
    assert answer.code == 0, answer.err
