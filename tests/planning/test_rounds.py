"""New votes for a run: merged, refitted from where it stood, kept with their history."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import DataWarning, InputError, UsageError
from softgold.models.base import Fit
from softgold.planning import merge_votes, update_run
from softgold.tables.votes import VoteTable


def table(rows: list[tuple[str, str, int]], duplicates: str = "error") -> VoteTable:
    return softgold.read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), duplicates=duplicates)


@pytest.fixture(scope="module")
def halves() -> tuple[VoteTable, VoteTable]:
    """95 % of the votes of a study, and the rest."""
    votes = softgold.simulate(n_items=400, n_annotators=40, votes_per_item=5, seed=6).votes.to_frame()
    late = np.random.default_rng(0).random(len(votes)) < 0.05
    return softgold.read_votes(votes[~late]), softgold.read_votes(votes[late])


@pytest.fixture(scope="module")
def stored(halves: tuple[VoteTable, VoteTable], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "run"
    softgold.fit(halves[0], engine="coordinate").save(path, source="first.csv")
    return path


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "run"))


# --- merging

OLD = [("x", "ann", 1), ("x", "bob", 0), ("y", "ann", 1)]


def test_items_and_annotators_join_by_their_ids() -> None:
    merged = merge_votes(table(OLD), table([("z", "bob", 1), ("y", "cy", 0)]))
    assert merged.to_frame().to_records(index=False).tolist() == [*OLD, ("z", "bob", 1), ("y", "cy", 0)]
    assert merged.item_ids.tolist() == ["x", "y", "z"]


def test_an_equal_vote_counts_once_with_a_warning() -> None:
    with pytest.warns(DataWarning, match="1 of the new votes are in the run already"):
        merged = merge_votes(table(OLD), table([("x", "ann", 1), ("y", "bob", 1)]))
    assert merged.n_votes == 4


def test_a_different_vote_is_an_error_that_names_it() -> None:
    with pytest.raises(InputError, match="first of 'ann' on item 'x': 1 before, 0 now"):
        merge_votes(table(OLD), table([("x", "ann", 0), ("y", "bob", 1)]))


@pytest.mark.parametrize(("rule", "votes"), [("first", [1]), ("last", [0]), ("all", [1, 0])])
def test_or_as_the_rule_says(rule: str, votes: list[int]) -> None:
    merged = merge_votes(table(OLD), table([("x", "ann", 0), ("y", "bob", 1)]), rule)  # type: ignore[arg-type]
    frame = merged.to_frame()
    assert frame.loc[(frame["item"] == "x") & (frame["annotator"] == "ann"), "vote"].tolist() == votes


def test_nothing_new_is_an_error() -> None:
    with (
        pytest.warns(DataWarning),
        pytest.raises(InputError, match="there is no new vote: all 1 are in the run already"),
    ):
        merge_votes(table(OLD), table([("x", "ann", 1)]))
    with pytest.raises(UsageError, match="duplicates"):
        merge_votes(table(OLD), table(OLD), "mean")  # type: ignore[arg-type]


def test_averaged_votes_keep_their_weights() -> None:
    old = table([*OLD, ("x", "ann", 0)], duplicates="mean")
    merged = merge_votes(old, table([("y", "bob", 1)]))
    assert merged.weights is not None
    assert merged.item_counts.tolist() == [2, 2]
    with pytest.raises(UsageError, match="means of repeated votes"):
        merge_votes(old, table([("x", "bob", 1)]), "last")


def test_those_who_abstained_and_vote_now_are_no_longer_silent() -> None:
    frame = pd.DataFrame([*OLD, ("z", "di", None)], columns=["item", "annotator", "vote"])
    with pytest.warns(DataWarning):
        old = softgold.read_votes(frame)
    assert old.abstained_items == ("z",)
    merged = merge_votes(old, table([("z", "ann", 1)]))
    assert (merged.n_abstentions, merged.abstained_items, merged.abstained_annotators) == (1, (), ("di",))


# --- updating


def test_an_update_gives_the_labels_of_a_fit_from_scratch(run: Path, halves: tuple[VoteTable, VoteTable]) -> None:
    before = softgold.open_run(run)
    first = before.fit
    found = update_run(run, halves[1], cost_per_vote=0.05, source="second.csv")
    votes = merge_votes(*halves)
    cold = softgold.fit(votes, engine="coordinate")
    stored = softgold.open_run(run)
    assert stored.fit.posterior.soft_labels().p == pytest.approx(cold.posterior.soft_labels().p, abs=1e-3)
    assert asdict(stored.fit.settings) == asdict(first.settings)
    assert found.fit.diagnostics.sweeps < cold.diagnostics.sweeps
    assert stored.votes.to_frame().equals(votes.to_frame())
    one, two = stored.record.history
    assert (one.votes, one.new_votes, one.source, one.cost) == (halves[0].n_votes, halves[0].n_votes, "first.csv", None)
    assert (two.votes, two.new_votes, two.source) == (votes.n_votes, halves[1].n_votes, "second.csv")
    assert two.cost == pytest.approx(0.05 * halves[1].n_votes)
    assert two.expected_error == pytest.approx(stored.fit.posterior.soft_labels().uncertainty.mean())
    assert one.expected_error == pytest.approx(first.posterior.soft_labels().uncertainty.mean())
    assert f"{halves[1].n_votes:,} new votes" in str(found)


def test_rounds_add_up_with_new_items_and_annotators(run: Path, halves: tuple[VoteTable, VoteTable]) -> None:
    update_run(run, halves[1])
    found = update_run(run, table([("new", "stranger", 1), ("new", halves[0].annotator_ids[0], 0)]))
    assert (found.new_items, found.new_annotators) == (1, 1)
    history = softgold.open_run(run).record.history
    assert [entry.new_votes for entry in history] == [halves[0].n_votes, halves[1].n_votes, 2]
    assert history == found.history


def test_other_files_of_the_run_stay_and_are_known_to_be_old(run: Path, halves: tuple[VoteTable, VoteTable]) -> None:
    (run / "notes.txt").write_text("mine")
    update_run(run, halves[1])
    assert (run / "notes.txt").read_text() == "mine"
    assert softgold.open_run(run).problems() == ()


def test_a_failed_update_leaves_the_run_as_it_was(
    run: Path, halves: tuple[VoteTable, VoteTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {path.name: path.read_bytes() for path in run.iterdir()}

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("softgold.runs.fits.write_json", fail)
    with pytest.raises(OSError, match="the disk is full"):
        update_run(run, halves[1])
    assert {path.name: path.read_bytes() for path in run.iterdir()} == contents
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_baselines_can_be_updated_too(tmp_path: Path) -> None:
    softgold.fit(table(OLD), model="mean").save(tmp_path / "run")
    update_run(tmp_path / "run", table([("y", "bob", 0)]))
    assert softgold.open_run(tmp_path / "run").soft_labels.p.tolist() == [0.5, 0.5]


def test_a_negative_cost_is_refused(run: Path, halves: tuple[VoteTable, VoteTable]) -> None:
    with pytest.raises(UsageError, match="cost_per_vote"):
        update_run(run, halves[1], cost_per_vote=-1.0)


# --- the warm start


def test_a_fit_that_starts_at_its_own_result_stops_at_once(fitted: Fit) -> None:
    again = softgold.fit(fitted.votes, engine="coordinate", start=fitted.posterior)
    assert again.diagnostics.sweeps <= 4
    assert again.posterior.soft_labels().p == pytest.approx(fitted.posterior.soft_labels().p, abs=1e-3)


def late_votes(votes: VoteTable, way: str, seed: int) -> tuple[VoteTable, VoteTable]:
    """Keep back 5 % of the votes: any of them, or votes on a fifth of the items."""
    rng, frame = np.random.default_rng(seed), votes.to_frame()
    open_items = rng.random(votes.n_items) < (1.0 if way == "anywhere" else 0.2)
    rows = rng.permutation(np.flatnonzero(open_items[votes.item_codes]))[: round(0.05 * votes.n_votes)]
    late = np.isin(np.arange(votes.n_votes), rows)
    return softgold.read_votes(frame[~late]), softgold.read_votes(frame[late])


STUDIES = {
    "plain": {"n_items": 1000, "n_annotators": 60, "votes_per_item": 5},
    "weak": {"n_items": 800, "n_annotators": 80, "votes_per_item": 4, "ability_mean": 0.6, "random_share": 0.2},
    "rare": {"n_items": 1500, "n_annotators": 50, "votes_per_item": 6, "prevalence": 0.1},
    "few votes each": {"n_items": 1200, "n_annotators": 500, "votes_per_item": 3},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")  # single annotators
@pytest.mark.parametrize("way", ["anywhere", "on a fifth of the items"])
@pytest.mark.parametrize("study", STUDIES)
def test_five_percent_new_votes_need_few_sweeps_and_give_the_same_labels(study: str, way: str) -> None:
    votes = softgold.simulate(seed=21, **STUDIES[study]).votes  # type: ignore[arg-type]
    first, late = late_votes(votes, way, 3)
    whole = merge_votes(first, late)
    start = softgold.fit(first, engine="coordinate").posterior
    cold = softgold.fit(whole, engine="coordinate")
    warm = softgold.fit(whole, engine="coordinate", start=start)
    assert warm.diagnostics.converged
    assert warm.diagnostics.sweeps <= 0.3 * cold.diagnostics.sweeps
    assert warm.posterior.soft_labels().p == pytest.approx(cold.posterior.soft_labels().p, abs=1e-3)


@pytest.mark.parametrize("options", [{"model": "glad"}, {"prevalence": 0.3}, {"prevalence": "share"}])
def test_other_models_and_prevalences_start_warm_too(options: dict[str, object]) -> None:
    votes = softgold.simulate(n_items=400, n_annotators=40, votes_per_item=5, seed=8).votes
    first, late = late_votes(votes, "anywhere", 0)
    start = softgold.fit(first, engine="coordinate", **options).posterior  # type: ignore[arg-type]
    whole = merge_votes(first, late)
    cold = softgold.fit(whole, engine="coordinate", **options)  # type: ignore[arg-type]
    warm = softgold.fit(whole, engine="coordinate", start=start, **options)  # type: ignore[arg-type]
    assert warm.diagnostics.sweeps < cold.diagnostics.sweeps / 2
    assert warm.posterior.soft_labels().p == pytest.approx(cold.posterior.soft_labels().p, abs=1e-3)


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")  # single annotators
@pytest.mark.parametrize("share", [0.4, 0.7])
def test_a_start_that_is_far_off_leads_to_the_same_labels(share: float) -> None:
    votes = softgold.simulate(n_items=300, n_annotators=30, votes_per_item=5, seed=9).votes
    late, frame = np.random.default_rng(1).random(votes.n_votes) < share, votes.to_frame()
    first = softgold.fit(softgold.read_votes(frame[~late]), engine="coordinate")
    whole = merge_votes(first.votes, softgold.read_votes(frame[late]))
    cold = softgold.fit(whole, engine="coordinate")
    warm = softgold.fit(whole, engine="coordinate", start=first.posterior)
    assert warm.diagnostics.converged
    assert warm.posterior.soft_labels().p == pytest.approx(cold.posterior.soft_labels().p, abs=1e-3)


def test_a_model_without_a_warm_start_starts_afresh(fitted: Fit) -> None:
    again = softgold.fit(fitted.votes, model="mean", start=fitted.posterior)
    assert again.posterior.soft_labels().p == pytest.approx(fitted.votes.item_shares)
