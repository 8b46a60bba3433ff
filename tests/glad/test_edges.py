"""Tables at the edge of what can be fitted: a result with a warning or a clear error; no NaN, no silent flip."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.glad.fitting import Fit, FitSettings, fit
from softgold.readers import read_votes
from softgold.votes import VoteTable

ENGINES: dict[str, dict[str, Any]] = {
    "svi": {},
    "coordinate": {"engine": "coordinate"},
    "coordinate, normal": {"engine": "coordinate", "family": "gaussian"},
    "coordinate, paper": {"engine": "coordinate", "prior": "paper"},
}
SINGLE = "have a single annotator, whom nothing can check"
TORN = "have votes too few or too divided to tell which annotators are helpful"


def table(rows: list[tuple[str, str, Any]], **options: Any) -> VoteTable:
    return read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), **options)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return ENGINES[request.param]


def fit_quietly(votes: VoteTable, **options: Any) -> Fit:
    """Fit, check that nothing is missing or out of range, and that each warning was also raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit(votes, **options)
    check_whole(found, votes)
    raised = [str(warning.message) for warning in caught]
    assert raised == list(found.diagnostics.warnings[len(votes.notes) :])
    return found


def check_whole(found: Fit, votes: VoteTable) -> None:
    items, abilities = found.posterior.items, found.posterior.abilities
    for part, length in ((items, votes.n_items), (abilities, votes.n_annotators)):
        for name, array in vars(part).items():
            assert len(array) == length, name
            assert np.isfinite(array).all(), name
    for share in (items.positive, items.expected_vote, abilities.p_adversarial):
        assert ((share >= 0) & (share <= 1)).all()
    for part in (items, abilities):
        assert (part.sd > 0).all()
        assert (part.low <= part.mean).all()
        assert (part.mean <= part.high).all()
    assert np.isfinite(found.diagnostics.elbo).all()
    assert np.isfinite(found.diagnostics.difficulty_scale)


def test_one_vote(engine: dict[str, Any]) -> None:
    found = fit_quietly(table([("x", "a", 1)]), **engine)
    everything, single = found.diagnostics.warnings
    assert everything.startswith("every vote is positive")
    assert single.startswith(f"1 of 1 connected components (1 items) {SINGLE}")
    assert found.diagnostics.components[0].orientation == "undetermined"
    p = float(found.posterior.items.positive[0])
    if "prior" in engine:
        assert p > 0.99  # the vague prior takes a single vote for the truth
    else:
        assert p == pytest.approx(0.5, abs=0.05)  # the exact marginal is 1/2
    turned = fit_quietly(table([("x", "a", 0)]), **engine)
    assert float(turned.posterior.items.positive[0]) <= 0.5 + 0.05


@pytest.mark.parametrize("n_items", [3, 200])
def test_one_annotator(engine: dict[str, Any], n_items: int) -> None:
    votes = table([(f"i{k}", "a", int(k % 3 == 0)) for k in range(n_items)])
    found = fit_quietly(votes, **engine)
    (message,) = found.diagnostics.warnings
    assert message.startswith(f"1 of 1 connected components ({n_items} items) {SINGLE}")
    assert np.isnan(found.posterior.annotator_agreement).all()
    p = found.posterior.items.positive
    assert p[votes.item_shares == 1].mean() >= p[votes.item_shares == 0].mean()  # with the votes, never against


def test_two_annotators_who_always_disagree(engine: dict[str, Any]) -> None:
    votes = table([(f"i{k}", who, (k % 2) ^ (who == "b")) for k in range(20) for who in "ab"])
    found = fit_quietly(votes, **engine)
    (message,) = found.diagnostics.warnings
    assert message.startswith(f"1 of 1 connected components (20 items) {TORN}")
    assert found.diagnostics.components[0].orientation == "undetermined"
    assert abs(found.diagnostics.components[0].margin) < 1
    if found.settings.engine == "coordinate":
        assert found.posterior.items.positive == pytest.approx(np.full(20, 0.5), abs=1e-6)


def test_two_annotators_who_always_agree(engine: dict[str, Any]) -> None:
    votes = table([(f"i{k}", who, k % 2) for k in range(20) for who in "ab"])
    found = fit_quietly(votes, **engine)
    assert found.diagnostics.warnings == ()
    assert np.array_equal(found.posterior.items.positive > 0.5, votes.item_shares > 0.5)


@pytest.mark.parametrize("vote", [0, 1])
def test_unanimous(engine: dict[str, Any], vote: int) -> None:
    votes = table([(f"i{k}", f"a{j}", vote) for k in range(10) for j in range(4)])
    found = fit_quietly(votes, **engine)
    word = "positive" if vote else "negative"
    assert found.diagnostics.warnings[0].startswith(f"every vote is {word}: nothing in the table tells annotators")
    assert (np.abs(found.posterior.items.positive - vote) < 0.1).all()
    assert found.posterior.abilities.mean.min() > 0


def test_items_with_one_vote_each(engine: dict[str, Any]) -> None:
    votes = table([(f"i{k}", f"a{k % 3}", int(k % 4 == 0)) for k in range(30)])
    found = fit_quietly(votes, **engine)
    (message,) = found.diagnostics.warnings
    assert message.startswith(f"3 of 3 connected components (30 items) {SINGLE}")


def crowd(seed: int = 0) -> list[tuple[str, str, Any]]:
    """Six helpful annotators, one wrong vote in ten, on thirty items that are positive by turns."""
    rng = np.random.default_rng(seed)
    return [(f"i{k}", f"a{j}", int((k % 2) ^ (rng.random() < 0.1))) for k in range(30) for j in range(6)]


def test_newcomers_with_one_vote_change_little(engine: dict[str, Any]) -> None:
    plain = fit_quietly(table(crowd()), **engine).posterior
    newcomers = [(f"i{k}", f"new{k}", 1 - k % 2) for k in range(30)]  # all of them against the truth
    joined = fit_quietly(table(crowd() + newcomers), **engine).posterior
    assert np.array_equal(plain.items.positive > 0.5, joined.items.positive > 0.5)
    assert np.abs(plain.items.positive - joined.items.positive).mean() < 0.05
    fresh = joined.annotator_counts == 1
    assert fresh.sum() == 30
    assert joined.abilities.sd[fresh].min() > joined.abilities.sd[~fresh].max()


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_abstentions_are_counted_and_not_used(engine: dict[str, Any]) -> None:
    rows = crowd()
    silent = [(f"i{k}", "shy", "") for k in range(10)] + [("nobody", "a0", "")]
    plain, with_silent = fit(table(rows), **engine), fit(table([*rows, *silent]), **engine)
    assert with_silent.posterior.item_ids.tolist() == plain.posterior.item_ids.tolist()
    assert np.array_equal(with_silent.posterior.items.positive, plain.posterior.items.positive)
    assert any("abst" in note or "no vote" in note for note in with_silent.diagnostics.warnings)


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_averaged_repeats_weigh_as_one_vote(engine: dict[str, Any]) -> None:
    rows = crowd()
    item, who, vote = rows[0]
    torn = table([*rows, (item, who, 1 - vote)], duplicates="mean")
    assert torn.weights is not None
    found = fit(torn, **engine)
    check_whole(found, torn)
    assert found.posterior.item_counts.tolist() == [6] * 30
    # Half a vote each way says nothing about the sign: the item is as if the annotator had not voted, but for S.
    without = fit(table(rows[1:]), **engine).posterior
    here = found.posterior.item_ids.get_indexer([item])[0]
    there = without.item_ids.get_indexer([item])[0]
    assert found.posterior.items.positive[here] == pytest.approx(without.items.positive[there], abs=0.1)


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_halved_repeats_equal_the_single_vote() -> None:
    """Two equal votes of weight 1/2 are one vote: the engines know weights, not rows."""
    plain = table(crowd())
    twice = VoteTable.from_codes(
        np.repeat(plain.item_codes, 2),
        np.repeat(plain.annotator_codes, 2),
        np.repeat(plain.votes, 2),
        plain.item_ids,
        plain.annotator_ids,
        weights=np.full(2 * plain.n_votes, 0.5),
    )
    once, halves = (fit(votes, engine="coordinate").posterior.items.positive for votes in (plain, twice))
    assert halves == pytest.approx(once, abs=1e-6)
    svi_once, svi_halves = (fit(votes).posterior.items.positive for votes in (plain, twice))
    assert svi_halves == pytest.approx(svi_once, abs=0.02)


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_repeats_that_are_kept_are_further_votes(engine: dict[str, Any]) -> None:
    rows = crowd()
    votes = table([*rows, *rows[:6]], duplicates="all")
    found = fit(votes, **engine)
    check_whole(found, votes)
    assert found.posterior.item_counts[0] == 12
    once, twice = (
        fitted.soft_labels().uncertainty[0] for fitted in (fit(table(rows), **engine).posterior, found.posterior)
    )
    assert twice <= once + 0.01


@pytest.mark.parametrize("options", [{"engine": "coordinate"}, {"max_steps": 30}], ids=["coordinate", "svi"])
@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
def test_thousands_of_votes_on_one_item(options: dict[str, Any]) -> None:
    votes = table([("x", f"a{k}", int(k % 4 != 0)) for k in range(5000)])
    found = fit(votes, **options)
    check_whole(found, votes)
    assert found.posterior.items.positive[0] > 0.999
    assert found.diagnostics.components[0].orientation == "kept"


def test_no_votes_at_all() -> None:
    with pytest.raises(InputError, match="no votes"):
        fit(pd.DataFrame({"item": ["x", "y"], "annotator": ["a", "a"], "vote": ["", None]}))
    with pytest.raises(InputError):
        fit(pd.DataFrame({"item": [], "annotator": [], "vote": []}))


def test_more_than_two_classes() -> None:
    with pytest.raises(InputError, match="row 3"):
        fit(pd.DataFrame({"item": list("xyz"), "annotator": list("aaa"), "vote": [0, 1, 2]}))


def test_disagreeing_components_do_not_disturb_the_others(engine: dict[str, Any]) -> None:
    torn = [(f"t{k}", who, (k % 2) ^ (who == "q")) for k in range(6) for who in "pq"]
    found = fit_quietly(table(crowd() + torn), **engine)
    (message,) = found.diagnostics.warnings
    assert message.startswith(f"1 of 2 connected components (6 items) {TORN}")
    assert [part.orientation for part in found.diagnostics.components] == ["kept", "undetermined"]
    right = (found.posterior.items.positive[:30] > 0.5) == (np.arange(30) % 2 == 1)
    assert right.mean() > 0.9


def test_settings_that_have_no_meaning_are_refused() -> None:
    for options, said in (
        ({"engine": "coordinate", "init": "paper"}, "init='paper' has no meaning for the coordinate engine"),
        ({"engine": "coordinate", "batch_items": 5}, "batch_items=5 has no meaning"),
        ({"engine": "coordinate", "device": "cuda"}, "device='cuda' has no meaning"),
        ({"family": "gaussian"}, "family='gaussian' has no meaning for the svi engine"),
        ({"engine": "em"}, "engine must be one of svi, coordinate; got 'em'"),
        ({"max_steps": 0}, "max_steps must be a whole number of at least 1, got 0"),
        ({"batch_items": 0}, "batch_items must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ):
        with pytest.raises(UsageError) as caught:
            FitSettings(**options)
        assert said in str(caught.value)


def test_the_readers_notes_are_kept_and_not_repeated() -> None:
    rows = crowd()
    with pytest.warns(DataWarning) as first:
        votes = table([*rows, rows[0]])
    assert len(votes.notes) == len(first) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(votes, engine="coordinate")
    assert found.diagnostics.warnings == votes.notes
