"""`softgold simulate` writes a whole study, or says in one sentence why not and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softgold.readers import read_experts, read_scores, read_votes
from softgold.simulation import simulate

FILES = {"annotators_truth.csv", "experts.csv", "scores.csv", "truth.csv", "votes.csv"}

Cli = Callable[..., Any]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_small_is_the_library_s_small(cli: Cli, tmp_path: Path) -> None:
    answer = cli("simulate", "-o", tmp_path / "study", "--preset", "small", "--seed", 3)
    assert (answer.code, answer.out) == (0, "")
    assert "16000 votes by 120 annotators on 2000 items" in answer.err
    assert names(tmp_path / "study") == FILES | {"simulation.json"}
    assert names(tmp_path) == {"study"}
    for name, table in simulate("small", seed=3).tables().items():
        written = pd.read_csv(tmp_path / "study" / f"{name}.csv", dtype={"item": "str"})
        pd.testing.assert_frame_equal(written, table, check_dtype=False)


def test_what_is_written_can_be_read(cli: Cli, tmp_path: Path) -> None:
    assert cli("simulate", "-o", tmp_path / "study", "--abstention-rate", 0.1, "--n-items", 200).code == 0
    votes = read_votes(tmp_path / "study" / "votes.csv")
    assert (votes.n_votes, votes.n_abstentions) == (1800, 200)
    assert read_experts(tmp_path / "study" / "experts.csv").expert_ids.tolist() == ["expert_1", "expert_2", "expert_3"]
    assert read_scores(tmp_path / "study" / "scores.csv").models == ("model_1", "model_2")
    assert read_experts(tmp_path / "study" / "truth.csv").labels.sum() == 60


def test_cleanpatrick_is_a_folder_for_each_issue(cli: Cli, tmp_path: Path) -> None:
    answer = cli("simulate", "-o", tmp_path / "study", "--preset", "cleanpatrick", "--scale", 0.1, "--json")
    assert answer.code == 0
    assert answer.err == ""
    studies = json.loads(answer.out)["studies"]
    assert [study["issue"] for study in studies] == ["off_topic", "near_duplicates", "label_errors"]
    assert [study["n_positive"] for study in studies] == [66, 348, 531]
    assert {study["n_annotators"] for study in studies} == {933}
    assert names(tmp_path / "study") == {"off_topic", "near_duplicates", "label_errors", "simulation.json"}
    assert all(names(tmp_path / "study" / study["issue"]) == FILES for study in studies)


def test_one_issue_of_cleanpatrick(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--preset", "cleanpatrick", "--issue", "label_errors", "--scale", 0.1, "--json", "--seed", 2)
    answer = cli("simulate", "-o", tmp_path / "study", *arguments)
    assert answer.code == 0
    assert names(tmp_path / "study") == FILES | {"simulation.json"}
    (study,) = json.loads(answer.out)["studies"]
    assert (study["issue"], study["settings"]["seed"], study["settings"]["prevalence"]) == ("label_errors", 2, 0.32)
    assert json.loads((tmp_path / "study" / "simulation.json").read_text())["studies"] == [study]


OWN = {
    "two-class": {"tricky_spread": 0.9, "pull_sd": 0.3, "lean_mean": -0.2, "lean_sd": 0.4},
    "glad": {"difficulty_scale": 2.5, "positive_ease": 1.5},
}


@pytest.mark.parametrize(("model", "other"), [("two-class", "glad"), ("glad", "two-class")])
def test_every_setting_has_an_option(cli: Cli, tmp_path: Path, model: str, other: str) -> None:
    given: dict[str, Any] = {
        "model": model,
        **OWN[model],
        "n_items": 90,
        "n_annotators": 30,
        "prevalence": 0.4,
        "ability_mean": 0.8,
        "ability_sd": 0.6,
        "adversarial_share": 0.1,
        "random_share": 0.2,
        "votes_per_item": 6.5,
        "vote_distribution": "fixed",
        "activity_spread": 0.5,
        "n_components": 3,
        "abstention_rate": 0.05,
        "expert_errors": [0.1, 0.2],
        "expert_ability": 4.0,
        "n_expert_items": 20,
        "model_aurocs": [0.7],
        "model_ambiguity": [0.25],
        "seed": 11,
    }
    options: list[object] = []
    for name, value in given.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else value
        options += [f"--{name.replace('_', '-')}", text]
    answer = cli("simulate", "-o", tmp_path / "study", "--json", *options)
    (study,) = json.loads(answer.out)["studies"]
    assert study["settings"] == {**given, **dict.fromkeys(OWN[other]), "issue": ""}
    assert (study["n_components"], study["n_experts"], study["n_expert_items"]) == (3, 2, 20)


def test_without_experts_and_models(cli: Cli, tmp_path: Path) -> None:
    answer = cli("simulate", "-o", tmp_path / "study", "--expert-errors", "none", "--model-aurocs", "none", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert names(tmp_path / "study") == FILES - {"experts.csv", "scores.csv"} | {"simulation.json"}


def test_an_existing_study_is_replaced_only_if_asked(cli: Cli, tmp_path: Path) -> None:
    study = tmp_path / "study"
    assert cli("simulate", "-o", study, "--seed", 1).code == 0
    before = (study / "votes.csv").read_bytes()
    refused = cli("simulate", "-o", study, "--seed", 2)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (study / "votes.csv").read_bytes() == before
    assert cli("simulate", "-o", study, "--seed", 2, "--force").code == 0
    assert (study / "votes.csv").read_bytes() != before


def test_a_folder_that_is_not_ours_is_never_replaced(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("ten years of work")
    answer = cli("simulate", "-o", tmp_path / "thesis", "--force")
    assert answer.code == 2
    assert names(tmp_path / "thesis") == {"chapter.txt"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prevalence", 1.2], "prevalence must lie in (0, 1), got 1.2"),
        (["--prevalence", 0], "prevalence must lie in (0, 1)"),
        (["--adversarial-share", 0.6, "--random-share", 0.6], "adversarial_share + random_share must be at most 1"),
        (["--n-items", 5, "--n-components", 9], "n_components must be at most 5"),
        (["--n-annotators", 5], "votes_per_item must be at most the number of annotators, 5"),
        (["--n-items", -5], "n_items must be a whole number"),
        (["--n-items", "many"], "--n-items"),
        (["--votes-per-item", -1], "votes_per_item"),
        (["--votes-per-item", "nan"], "votes_per_item"),
        (["--votes-per-item", 1], "too few to link"),
        (["--abstention-rate", 1.5], "abstention_rate"),
        (["--expert-errors", "0.1,x"], "--expert-errors must be numbers"),
        (["--expert-errors", ""], "--expert-errors must be numbers"),
        (["--expert-errors", "2"], "expert_errors"),
        (["--n-expert-items", 4000], "n_expert_items must be at most n_items"),
        (["--model-aurocs", "0.9"], "one entry per model, got 1 and 2"),
        (["--model-aurocs", "1,0.9"], "must be below 1"),
        (["--difficulty-scale", 2], "difficulty_scale is a setting of the model 'glad', but the model is 'two-class'"),
        (
            ["--model", "glad", "--lean-mean", 0],
            "lean_mean is a setting of the model 'two-class'",
        ),
        (["--model", "irt"], "--model"),
        (["--scale", 0], "scale"),
        (["--seed", -1], "--seed"),
        (["--issue", "off_topic"], "--issue works only with --preset cleanpatrick"),
        (["--preset", "cleanpatrick", "--issue", "colour"], "--issue"),
        (["--preset", "huge"], "--preset"),
    ],
)
def test_bad_arguments_are_one_sentence(cli: Cli, tmp_path: Path, options: list[object], words: str) -> None:
    answer = cli("simulate", "-o", tmp_path / "study", *options)
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert words in answer.err
    assert answer.out == ""
    assert names(tmp_path) == set()


def test_an_output_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    answer = cli("simulate", "-o", tmp_path / "nowhere" / "study")
    assert answer.code == 2
    assert "nowhere" in answer.err
    assert cli("simulate", "--preset", "small").code == 2


@pytest.mark.slow
def test_the_toy_segmentation_study_feeds_uncertainty(cli: Callable[..., Any], tmp_path: Path) -> None:
    toy = tmp_path / "toy"
    answer = cli("simulate", "--preset", "segmentation", "-o", toy, "--seed", "1")
    assert answer.code == 0
    assert f"softgold uncertainty {toy} --splits {toy / 'splits.csv'}" in answer.err
    splits = pd.read_csv(toy / "splits.csv")
    some = splits.groupby("split").head(4)  # of the seventy cases, to save time
    some.to_csv(toy / "splits.csv", index=False)
    for name in set(splits["case"]) - set(some["case"]):
        (toy / f"{name}.npz").unlink()
    judged = cli("uncertainty", toy, "--splits", toy / "splits.csv", "-o", tmp_path / "judged")
    assert judged.code == 0, judged.err


def test_the_toy_segmentation_study_refuses_options_on_votes(cli: Callable[..., Any], tmp_path: Path) -> None:
    answer = cli("simulate", "--preset", "segmentation", "-o", tmp_path / "toy", "--n-items", "5")
    assert answer.code == 2
    assert "leave out the options about votes" in answer.err
    assert not (tmp_path / "toy").exists()
