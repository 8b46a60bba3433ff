"""Tables at the edge of what can be fitted: a result with a notice or a clear error; no NaN, no silent flip."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.tables import small_tables
from softgold.errors import DataWarning, InputError
from softgold.models.base import Fit, fit
from softgold.readers import read_votes
from softgold.tables.votes import VoteTable

ENGINES: dict[str, dict[str, Any]] = {
    "two-class": {"engine": "coordinate"},
    "glad": {"model": "glad", "engine": "coordinate"},
    "glad, paper": {"model": "glad", "engine": "coordinate", "prior": "paper"},
    "two-class, svi": {},
}
DETERMINISTIC = ["two-class", "glad", pytest.param("glad, paper", marks=pytest.mark.slow)]
ALONE = "have a single annotator, whom nothing can check"
CAMPS = "have annotators who divide into camps"


def table(rows: list[tuple[str, str, Any]], **options: Any) -> VoteTable:
    return read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), **options)


@pytest.fixture(params=[*DETERMINISTIC, pytest.param("two-class, svi", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return ENGINES[request.param]


def fit_quietly(votes: VoteTable, **options: Any) -> Fit:
    """Fit, check that nothing is missing or out of range, and that each notice was also a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit(votes, **options)
    check_whole(found, votes)
    raised = [str(warning.message) for warning in caught]
    assert raised == [notice.text for notice in found.diagnostics.notices if notice.kind != "reader"]
    return found


def check_whole(found: Fit, votes: VoteTable) -> None:
    labels, annotators = found.posterior.soft_labels().to_frame(), found.posterior.annotators()
    assert len(labels) == votes.n_items
    assert len(annotators) == votes.n_annotators
    assert np.isfinite(labels.drop(columns="item").to_numpy(dtype=float)).all()
    assert np.isfinite(annotators.drop(columns=["annotator", "agreement"]).to_numpy(dtype=float)).all()
    for share in (labels["p"], labels["expected_vote"], annotators["p_adversarial"], annotators["sensitivity"]):
        assert share.between(0, 1).all()
    for name in ("sensitivity", "specificity"):
        assert (annotators[f"{name}_lo"] <= annotators[f"{name}_hi"]).all()
        if (
            getattr(found.settings, "prior", None) != "paper"
        ):  # under which a chance of 1 % moves a mean beyond its interval
            assert (annotators[f"{name}_lo"] <= annotators[name]).all()
            assert (annotators[name] <= annotators[f"{name}_hi"]).all()
    assert (labels["b_lo"] <= labels["b_mean"]).all()
    assert (labels["b_mean"] <= labels["b_hi"]).all()
    assert (labels["b_sd"] > 0).all()
    assert (annotators["ability_sd"] > 0).all()
    assert np.isfinite(found.diagnostics.elbo).all()
    assert np.isfinite(list((found.diagnostics.learned or {}).values())).all()
    assert np.array_equal(found.posterior.predict(votes).p, labels["p"].to_numpy())


def p_of(found: Fit) -> Any:
    return found.posterior.soft_labels().p


def test_one_vote(engine: dict[str, Any]) -> None:
    found = fit_quietly(table([("x", "a", 1)]), **engine)
    everything, single = found.diagnostics.notices
    assert (everything.kind, single.kind) == ("data", "orientation")
    assert everything.text.startswith("every vote is positive")
    assert single.text.startswith(f"1 of 1 connected components (1 items) {ALONE}")
    assert p_of(found)[0] >= 0.5  # with the vote, if anywhere
    turned = fit_quietly(table([("x", "a", 0)]), **engine)
    assert p_of(turned)[0] == pytest.approx(1 - p_of(found)[0], abs=0.01)


def test_two_annotators_who_always_disagree(engine: dict[str, Any]) -> None:
    votes = table([(f"i{k}", who, (k % 2) ^ (who == "b")) for k in range(20) for who in "ab"])
    found = fit_quietly(votes, **engine)
    (notice,) = found.diagnostics.notices
    assert notice.text.startswith(f"1 of 1 connected components (20 items) {CAMPS}")
    assert np.abs(p_of(found) - 0.5).max() < 0.05
    assert found.diagnostics.components[0].certainty < 0.6


@pytest.mark.parametrize("engine", DETERMINISTIC, indirect=True)
def test_two_annotators_who_always_agree(engine: dict[str, Any]) -> None:
    votes = table([(f"i{k}", who, k % 2) for k in range(20) for who in "ab"])
    found = fit_quietly(votes, **engine)
    assert np.array_equal(p_of(found) > 0.5, votes.item_shares > 0.5)


@pytest.mark.parametrize("vote", [0, 1])
@pytest.mark.parametrize("engine", DETERMINISTIC, indirect=True)
def test_unanimous(engine: dict[str, Any], vote: int) -> None:
    votes = table([(f"i{k}", f"a{j}", vote) for k in range(10) for j in range(4)])
    found = fit_quietly(votes, **engine)
    word = "positive" if vote else "negative"
    assert found.diagnostics.warnings[0].startswith(f"every vote is {word}: nothing in the table tells annotators")
    assert (np.abs(p_of(found) - vote) < 0.25).all()
    assert found.posterior.annotators()["ability_mean"].min() > 0


def test_items_with_one_vote_each(engine: dict[str, Any]) -> None:
    votes = table([(f"i{k}", f"a{k % 3}", int(k % 4 == 0)) for k in range(30)])
    found = fit_quietly(votes, **engine)
    single = found.diagnostics.notices[0]
    assert single.text.startswith(f"3 of 3 connected components (30 items) {ALONE}")


def small_crowd(seed: int = 0) -> list[tuple[str, str, Any]]:
    """Six helpful annotators, one wrong vote in ten, on thirty items that are positive by turns."""
    rng = np.random.default_rng(seed)
    return [(f"i{k}", f"a{j}", int((k % 2) ^ (rng.random() < 0.1))) for k in range(30) for j in range(6)]


@cache
def fit_of_small_crowd(**engine: Any) -> Fit:
    """What several tests compare with; under the published prior it takes hundreds of sweeps."""
    return fit(table(small_crowd()), **engine)


@pytest.mark.parametrize("engine", ["two-class", "glad"], indirect=True)
def test_newcomers_with_one_vote_change_little(engine: dict[str, Any]) -> None:
    plain = fit_quietly(table(small_crowd()), **engine)
    newcomers = [(f"i{k}", f"new{k}", k // 2 % 2) for k in range(30)]  # right in half of their votes
    joined = fit_quietly(table(small_crowd() + newcomers), **engine)
    assert np.array_equal(p_of(plain) > 0.5, p_of(joined) > 0.5)
    assert np.abs(p_of(plain) - p_of(joined)).mean() < 0.1
    frame = joined.posterior.annotators()
    fresh = frame["n_votes"] == 1
    assert fresh.sum() == 30
    assert frame["ability_sd"][fresh].min() > 0.9 * frame["ability_sd"][~fresh].max()


@pytest.mark.parametrize("engine", DETERMINISTIC, indirect=True)
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_abstentions_are_counted_and_not_used(engine: dict[str, Any]) -> None:
    rows = small_crowd()
    silent = [(f"i{k}", "shy", "") for k in range(10)] + [("nobody", "a0", "")]
    plain, with_silent = fit_of_small_crowd(**engine), fit(table([*rows, *silent]), **engine)
    assert with_silent.posterior.item_ids.tolist() == plain.posterior.item_ids.tolist()
    assert np.array_equal(p_of(with_silent), p_of(plain))
    assert {notice.kind for notice in with_silent.diagnostics.notices} == {"reader"}


@pytest.mark.parametrize("engine", DETERMINISTIC, indirect=True)
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_averaged_repeats_weigh_as_one_vote(engine: dict[str, Any]) -> None:
    rows = small_crowd()
    item, who, vote = rows[0]
    torn = table([*rows, (item, who, 1 - vote)], duplicates="mean")
    assert torn.weights is not None
    found = fit(torn, **engine)
    check_whole(found, torn)
    assert found.posterior.soft_labels().n_votes.tolist() == [6] * 30
    # Half a vote each way says little about the item: it is about as if the annotator had not voted.
    without = fit(table(rows[1:]), **engine).posterior.soft_labels()
    here, there = torn.item_ids.get_loc(item), without.item_ids.get_loc(item)
    assert p_of(found)[here] == pytest.approx(without.p[there], abs=0.1)


@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_halved_repeats_equal_the_single_vote(model: str) -> None:
    """Two equal votes of weight 1/2 are one vote: the engines know weights, not rows."""
    plain = table(small_crowd())
    twice = VoteTable.from_codes(
        np.repeat(plain.item_codes, 2),
        np.repeat(plain.annotator_codes, 2),
        np.repeat(plain.votes, 2),
        plain.item_ids,
        plain.annotator_ids,
        weights=np.full(2 * plain.n_votes, 0.5),
    )
    once, halves = (p_of(fit(votes, model=model, engine="coordinate")) for votes in (plain, twice))
    assert halves == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize("engine", DETERMINISTIC, indirect=True)
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_repeats_that_are_kept_are_further_votes(engine: dict[str, Any]) -> None:
    rows = small_crowd()
    votes = table([*rows, *rows[:6]], duplicates="all")
    found = fit(votes, **engine)
    check_whole(found, votes)
    assert found.posterior.soft_labels().n_votes[0] == 12
    once, twice = (one.posterior.soft_labels().uncertainty[0] for one in (fit_of_small_crowd(**engine), found))
    assert twice <= once + 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"engine": "coordinate"}, {"max_steps": 30}],
    ids=["coordinate", "svi"],
)
@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
def test_thousands_of_votes_on_one_item(options: dict[str, Any]) -> None:
    votes = table([("x", f"a{k}", int(k % 4 != 0)) for k in range(5000)])
    found = fit(votes, **options)
    check_whole(found, votes)
    assert p_of(found)[0] > 0.6
    assert found.diagnostics.components[0].certainty == 1


def test_a_thousand_annotators_with_one_vote_each() -> None:
    """Each on one of a hundred items, right in four votes of five."""
    rng = np.random.default_rng(0)
    items = np.arange(1000) % 100
    answers = (items % 2 == 0) ^ (rng.random(1000) < 0.2)
    votes = VoteTable.from_codes(items, np.arange(1000), answers, map(str, range(100)), map(str, range(1000)))
    found = fit(votes, engine="coordinate")
    check_whole(found, votes)
    assert found.diagnostics.warnings == ()
    assert ((p_of(found) > 0.5) == (np.arange(100) % 2 == 0)).mean() > 0.95


def test_no_votes_at_all() -> None:
    with pytest.raises(InputError, match="no votes"):
        fit(pd.DataFrame({"item": ["x", "y"], "annotator": ["a", "a"], "vote": ["", None]}))
    with pytest.raises(InputError):
        fit(pd.DataFrame({"item": [], "annotator": [], "vote": []}))


def test_more_than_two_classes() -> None:
    with pytest.raises(InputError, match="row 3"):
        fit(pd.DataFrame({"item": list("xyz"), "annotator": list("aaa"), "vote": [0, 1, 2]}))


def test_the_readers_notes_are_kept_and_not_repeated() -> None:
    rows = small_crowd()
    with pytest.warns(DataWarning) as first:
        votes = table([*rows, rows[0]])
    assert len(votes.notes) == len(first) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(votes, engine="coordinate")
    assert found.diagnostics.warnings == votes.notes
    assert found.diagnostics.notices[0].kind == "reader"


any_table = settings(max_examples=25, suppress_health_check=list(HealthCheck))
quiet = pytest.mark.filterwarnings("ignore::softgold.errors.SoftgoldWarning")


@pytest.mark.slow
@quiet
@any_table
@given(small_tables(), st.sampled_from(["two-class", "glad"]))
def test_any_table_has_a_result(frame: pd.DataFrame, model: str) -> None:
    votes = read_votes(frame)
    check_whole(fit(votes, model=model, engine="coordinate"), votes)


@pytest.mark.slow
@quiet
@any_table
@given(small_tables(), st.sampled_from(["two-class", "glad"]), st.integers(0, 2**32 - 1))
def test_neither_order_nor_swapping_matter_on_any_table(frame: pd.DataFrame, model: str, seed: int) -> None:
    def soft_labels(rows: pd.DataFrame) -> pd.Series[float]:
        labels = fit(rows, model=model, engine="coordinate").posterior.soft_labels()
        return pd.Series(labels.p, index=labels.item_ids)

    here = soft_labels(frame)
    assert soft_labels(frame.sample(frac=1, random_state=seed))[here.index].to_numpy() == pytest.approx(
        here.to_numpy(), abs=1e-6
    )
    assert soft_labels(frame.assign(vote=1 - frame["vote"])).to_numpy() == pytest.approx(1 - here.to_numpy(), abs=1e-6)


@pytest.mark.parametrize("n_items", [1, 5, 50])
@pytest.mark.parametrize("options", [{}, {"prevalence": 0.2}, {"prevalence": "majority"}, {"model": "glad"}], ids=str)
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_a_single_annotator_converges(n_items: int, options: dict[str, Any]) -> None:
    """Also where the prevalence speaks against the votes, and every turn of the ascent ends where it began."""
    votes = [number % 3 == 0 for number in range(n_items)]
    ids = [f"item {number}" for number in range(n_items)]
    table = VoteTable.from_codes(range(n_items), [0] * n_items, votes, ids, ["ann"])
    found = fit(table, engine="coordinate", **options)
    assert found.diagnostics.converged
    assert found.diagnostics.sweeps < 500
