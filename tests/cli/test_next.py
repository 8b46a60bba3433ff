"""`softgold next`."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import softgold
from softgold.planning.allocation import ANNOTATORS_SUGGESTED, PLAN_COLUMNS


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "run"
    votes = softgold.simulate(n_items=120, n_annotators=15, votes_per_item=3, seed=5).votes
    softgold.fit(votes, engine="coordinate").save(path)
    return path


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "run"))


def test_a_plan_is_written(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    target = tmp_path / "assignments.csv"
    answer = cli("next", run, "--budget", 40, "-o", target)
    assert answer.code == 0, answer.err
    assert answer.out == ""
    assert answer.err.startswith("40 votes on ")
    assert "--annotators FILE" in answer.err
    frame = pd.read_csv(target)
    assert tuple(frame.columns) == (*PLAN_COLUMNS, ANNOTATORS_SUGGESTED)
    assert frame[ANNOTATORS_SUGGESTED].str.split("; ").explode().isin(softgold.open_run(run).votes.annotator_ids).all()
    assert frame["votes_suggested"].sum() == 40
    assert cli("next", run, "--budget", 40, "-o", target).code == 2
    assert cli("next", run, "--budget", 40, "-o", target, "--force").code == 0


def test_or_printed(cli: Callable[..., Any], run: Path) -> None:
    answer = cli("next", run, "--budget", 5, "--quiet")
    assert answer.err == ""
    assert pd.read_csv(io.StringIO(answer.out))["votes_suggested"].sum() == 5
    summary = json.loads(cli("next", run, "--budget", 5, "--json").out)
    assert summary["budget"] == 5
    assert summary["table_error_after"] < summary["table_error_before"]


def test_without_annotators_nobody_is_named(cli: Callable[..., Any], tmp_path: Path) -> None:
    counts = pd.DataFrame(
        {"item": [f"i{n}" for n in range(40)], "n_positive": [n % 4 for n in range(40)], "n_votes": 3}
    )
    counts.to_csv(tmp_path / "counts.csv", index=False)
    assert cli("fit", tmp_path / "counts.csv", "--engine", "coordinate", "-o", tmp_path / "counted").code == 0
    answer = cli("next", tmp_path / "counted", "--budget", 5)
    assert answer.code == 0, answer.err
    assert "no annotators are suggested" in answer.err
    assert tuple(pd.read_csv(io.StringIO(answer.out)).columns) == PLAN_COLUMNS


def test_where_all_have_voted_nobody_is_left(cli: Callable[..., Any], tmp_path: Path) -> None:
    rows = [(f"i{item}", f"a{who}", int(item % 4 > who)) for item in range(60) for who in range(3)]
    softgold.fit(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), engine="coordinate").save(tmp_path / "run")
    answer = cli("next", tmp_path / "run", "--budget", 6)
    assert answer.code == 0, answer.err
    assert "for 6 votes no annotator is left: all have voted on these items" in answer.err
    assert pd.read_csv(io.StringIO(answer.out))[ANNOTATORS_SUGGESTED].isna().all()


def test_everybody_of_the_run_is_assigned(cli: Callable[..., Any], run: Path) -> None:
    answer = cli("next", run, "--budget", 30, "--annotators", run / "annotators.csv")
    assert answer.code == 0, answer.err
    plan, votes = pd.read_csv(io.StringIO(answer.out), dtype=str), softgold.open_run(run).votes.to_frame().astype(str)
    assert len(plan) == 30
    shares = plan["annotator"].value_counts()
    assert f"by {len(shares)} annotators with up to {shares.max()} votes each" in answer.err
    assert set(plan["annotator"]) <= set(votes["annotator"])
    assert plan.merge(votes, on=["item", "annotator"]).empty


def test_people_are_assigned(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    known = softgold.open_run(run).votes.annotator_ids[:8]
    people.write_text("worker,capacity\n" + "".join(f"{name},6\n" for name in known) + "newcomer,6\n")
    answer = cli("next", run, "--budget", 30, "--annotators", people, "--explore", 0.2)
    assert answer.code == 0, answer.err
    assert "1 of 9 annotators are not in the run and count as newcomers" in answer.err
    assert "--annotators FILE" not in answer.err
    frame = pd.read_csv(io.StringIO(answer.out))
    assert len(frame) == 30
    assert not frame.duplicated(["item", "annotator"]).any()
    assert (frame["annotator"] == "newcomer").sum() >= 1


@pytest.mark.slow
def test_the_forecast_says_when_to_stop(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    items = tmp_path / "ambiguous.csv"
    answer = cli("next", run, "--forecast", "--target-error", 0.18, "--budget", 200, "--ambiguous", items)
    assert answer.code == 0, answer.err
    assert "of the 120 labels are wrong now" in answer.err
    assert "18 % wrong" in answer.err
    assert "with 200 more votes about" in answer.err
    frame = pd.read_csv(io.StringIO(answer.out))
    assert set(frame["policy"]) == {"adaptive", "uniform"}
    assert list(pd.read_csv(items).columns) == ["item", "p", "n_votes", "error_left"]
    record = json.loads(cli("next", run, "--forecast", "--json", "--quiet").out)
    assert record["n_items"] == 120
    assert record["needed"] is None
    assert isinstance(record["ambiguous"], list)


def test_control_questions(cli: Callable[..., Any], run: Path) -> None:
    answer = cli("next", run, "--controls", "newcomer", "--budget", 3)
    assert answer.code == 0, answer.err
    assert "3 control questions for 'newcomer'" in answer.err
    assert len(pd.read_csv(io.StringIO(answer.out))) == 3
    assert (
        json.loads(cli("next", run, "--controls", "newcomer", "--budget", 3, "--json").out)["annotator"] == "newcomer"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say how many votes to buy with --budget N"),
        (["--budget", "0"], "budget must be"),
        (["--budget", "99999"], "a budget of 99,999 is above what is left"),
        (["--budget", "5", "--explore", "2"], "explore must lie in"),
        (["--budget", "5", "--max-per-item", "0"], "max_per_item must be"),
        (["--forecast", "--target-error", "3"], "target_error must lie in"),
        (["--controls", "x"], "--budget N"),
        (["--controls", "x", "--budget", "5", "--forecast"], "--controls goes with --budget alone"),
        (["--controls", "x", "--budget", "9999"], "could be control questions"),
        (["--budget", "5", "--annotators", "nobody.csv"], "nobody.csv"),
        (["--budget", "5", "--annotators", "strangers.csv"], "none of the 2 annotators of strangers.csv has a vote"),
        (["--budget", "9", "--annotators", "few.csv"], "may give 2 votes together"),
        (["--budget", "9", "--task", "edema"], "has one question; leave out --task"),
    ],
)
def test_bad_input_gets_a_sentence(
    cli: Callable[..., Any],
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("strangers.csv").write_text("annotator\nx\ny\n")
    Path("few.csv").write_text(f"annotator,capacity\n{softgold.open_run(run).votes.annotator_ids[0]},2\n")
    answer = cli("next", run, *options, "-o", "out.csv")
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert not Path("out.csv").exists()


def test_a_run_of_a_baseline_cannot_plan(cli: Callable[..., Any], tmp_path: Path) -> None:
    votes = softgold.simulate(n_items=30, n_annotators=12, seed=5).votes
    softgold.fit(votes, model="mean").save(tmp_path / "run")
    answer = cli("next", tmp_path / "run", "--budget", 5)
    assert (answer.code, answer.out) == (2, "")
    assert "planning needs a crowd model (two-class or glad)" in answer.err
    assert cli("next", tmp_path / "nothing", "--budget", 5).code == 2


def test_one_question_of_several(cli: Callable[..., Any], tmp_path: Path) -> None:
    votes = {name: softgold.simulate(n_items=40, n_annotators=12, seed=seed).votes for seed, name in enumerate("ab")}
    softgold.save_study(softgold.fit_tasks(votes, engine="coordinate", n_jobs=1), tmp_path / "run", kind="tasks")
    answer = cli("next", tmp_path / "run", "--budget", 5)
    assert answer.code == 2
    assert "has 2 questions; choose one with --task: 'a', 'b'" in answer.err
    assert cli("next", tmp_path / "run", "--budget", 5, "--task", "b").code == 0
