"""Which way up: right for every seed, turned where it must be, and said where it cannot be known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from softgold.errors import ConvergenceWarning
from softgold.glad.fitting import fit
from softgold.glad.orientation import orient, upright_probability
from softgold.readers import read_votes
from softgold.simulation import Simulation, simulate
from softgold.votes import VoteTable

SEEDS = range(20)


def study(seed: int, n_components: int) -> Simulation:
    return simulate(
        n_items=90,
        n_annotators=30,
        votes_per_item=6,
        n_components=n_components,
        adversarial_share=0.1,
        random_share=0.1,
        seed=seed,
        expert_errors=(),
        model_aurocs=(),
        model_ambiguity=(),
    )


def parts_right(drawn: Simulation, p: np.ndarray) -> list[bool]:
    """Whether the soft labels of each component agree with the truth more than their mirror image does."""
    right = (p >= 0.5) == drawn.truth.label
    parts = drawn.votes.components
    return [bool(right[parts.items == part].mean() > 0.5) for part in range(parts.count)]


@pytest.mark.parametrize("n_components", [1, 3])
def test_coordinate_is_right_in_20_of_20_seeds(n_components: int) -> None:
    for seed in SEEDS:
        drawn = study(seed, n_components)
        found = fit(drawn.votes, engine="coordinate")
        assert parts_right(drawn, found.posterior.items.positive) == [True] * n_components, seed
        assert [part.orientation for part in found.diagnostics.components] == ["kept"] * n_components


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
@pytest.mark.parametrize("n_components", [1, 3])
def test_svi_is_right_in_20_of_20_seeds(n_components: int) -> None:
    for seed in SEEDS:
        drawn = study(seed, n_components)
        found = fit(drawn.votes, seed=seed, max_steps=30)
        assert parts_right(drawn, found.posterior.items.positive) == [True] * n_components, seed


def test_the_published_start_is_turned_where_noise_chose_the_wrong_side() -> None:
    """From zeros the sign is a toss of a coin in each component: some are turned, and all end upright."""
    verdicts: list[str] = []
    for seed in range(3):
        drawn = study(seed, 3)
        with pytest.warns(ConvergenceWarning):
            found = fit(drawn.votes, init="paper", difficulty_scale=3.0, seed=seed, max_steps=250)
        verdicts += [part.orientation for part in found.diagnostics.components]
        assert parts_right(drawn, found.posterior.items.positive) == [True] * 3
        assert all(part.mean_ability > 0 for part in found.diagnostics.components)
        abilities = found.posterior.abilities  # turned as a whole: moments, probabilities and nodes
        assert abilities.p_adversarial == pytest.approx(ndtr(-abilities.mean / abilities.sd), abs=1e-9)
        assert (abilities.nodes * abilities.mass).sum(axis=1) == pytest.approx(abilities.mean, abs=1e-6)
        assert ((abilities.low < abilities.mean) & (abilities.mean < abilities.high)).all()
        assert np.abs(found.posterior.predict_proba(drawn.votes) - found.posterior.items.positive).mean() < 0.1
    assert {"kept", "flipped"} <= set(verdicts)


# --- the rule itself ---


def two_parts() -> VoteTable:
    """Annotators a, b, c on items x, y; and d, e on item z. Majorities: x and z positive, y negative."""
    rows = [
        *(("x", annotator, vote) for annotator, vote in zip("abc", (1, 1, 0), strict=True)),
        *(("y", annotator, vote) for annotator, vote in zip("abc", (0, 0, 1), strict=True)),
        ("z", "d", 1),
        ("z", "e", 1),
    ]
    return read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]))


def oriented(ability: list[float], sd: float, lean: list[float], **options: Any) -> Any:
    return orient(two_parts(), np.array(ability), np.full(5, sd), np.array(lean), **options)


def test_helpful_components_are_kept_and_others_turned_each_by_itself() -> None:
    found = oriented([1, 1, -0.5, -2, -2], 0.1, [2, -2, -3])
    assert found.items.tolist() == [1, 1, -1]
    assert found.annotators.tolist() == [1, 1, 1, -1, -1]
    assert [part.orientation for part in found.components] == ["kept", "flipped"]
    assert [part.mean_ability for part in found.components] == pytest.approx([0.5, 2.0])
    first, second = found.components
    assert (first.items, first.annotators, first.votes) == (2, 3, 6)
    assert (second.items, second.annotators, second.votes) == (1, 2, 2)


def test_the_margin_is_the_mean_ability_in_its_own_standard_deviations() -> None:
    found = oriented([1, 1, -0.5, -2, -2], 0.3, [2, -2, -3])
    assert found.components[0].margin == pytest.approx(0.5 / (0.3 / np.sqrt(3)))
    assert found.components[1].margin == pytest.approx(2.0 / (0.3 / np.sqrt(2)))


def test_an_unclear_component_follows_its_consensus_and_is_undetermined() -> None:
    found = oriented([0.1, 0.0, 0.0, 0.1, -0.2], 1.0, [0.2, -0.1, -0.1])
    assert [part.orientation for part in found.components] == ["undetermined", "undetermined"]
    assert found.items.tolist() == [1, 1, -1]  # z leaned against both of its votes
    assert found.components[1].mean_ability == pytest.approx(0.05)


def test_annotators_are_counted_by_their_votes() -> None:
    rows = [(f"i{k}", "busy", 1) for k in range(9)] + [("i0", "new", 0)]
    votes = read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]))
    found = orient(votes, np.array([0.5, -4.0]), np.full(2, 0.01), np.ones(9))
    assert found.components[0].mean_ability == pytest.approx((9 * 0.5 - 4.0) / 10)
    assert found.components[0].orientation == "kept"


def test_a_single_annotator_is_never_determined() -> None:
    votes = read_votes(pd.DataFrame({"item": ["x", "y"], "annotator": ["a", "a"], "vote": [1, 0]}))
    found = orient(votes, np.array([-3.0]), np.array([0.01]), np.array([-1.0, 1.0]))
    assert found.components[0].orientation == "undetermined"
    assert found.items.tolist() == [-1, -1]  # with the votes, for want of anything better


def test_a_prior_with_a_sign_has_settled_the_matter() -> None:
    found = oriented([-1, -1, -1, -2, -2], 0.1, [2, -2, -3], symmetric=False)
    assert found.items.tolist() == [1, 1, 1]
    assert [part.orientation for part in found.components] == ["kept", "kept"]
    assert found.components[0].mean_ability == pytest.approx(-1.0)


def test_adversaries_are_found_and_not_followed() -> None:
    drawn = simulate(n_items=300, n_annotators=20, votes_per_item=8, adversarial_share=0.2, seed=5)
    found = fit(drawn.votes, engine="coordinate").posterior
    adversarial = (drawn.truth.kind == "adversarial") & (np.abs(drawn.truth.ability) > 0.3)
    helpful = (drawn.truth.kind == "helpful") & (drawn.truth.ability > 0.3)
    assert found.abilities.p_adversarial[adversarial].min() > 0.9
    assert found.abilities.p_adversarial[helpful].max() < 0.1


def two_camps(votes_each: int) -> pd.DataFrame:
    """Three annotators who say one thing and three who say the opposite, with one slip in ten."""
    rng = np.random.default_rng(0)
    rows = [
        (f"i{item}", f"a{annotator}", (item % 2) ^ (annotator > 2) ^ (rng.random() < 0.1))
        for item in range(votes_each)
        for annotator in range(6)
    ]
    return pd.DataFrame(rows, columns=["item", "annotator", "vote"]).astype({"vote": int})


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
@pytest.mark.parametrize("engine", ["svi", "coordinate"])
def test_camps_in_balance_leave_every_label_open(engine: Any) -> None:
    result = fit(two_camps(40), engine=engine)
    assert result.diagnostics.components[0].orientation == "undetermined"
    assert np.abs(result.posterior.items.positive - 0.5).max() < 0.1
    assert np.abs(result.posterior.items.low + result.posterior.items.high).max() < 1e-9


def test_the_larger_camp_prevails_in_proportion() -> None:
    table = read_votes(two_camps(40))
    certain = upright_probability(table, np.array([1.0, 1, 1, 1, 1, 1]))
    even = upright_probability(table, np.array([1.0, 1, 1, 0, 0, 0]))
    some = upright_probability(table, np.array([1.0, 1, 1, 0.5, 0.5, 0.5]))
    assert (certain == 1).all()
    assert (even == 0.5).all()
    assert ((some > 0.9) & (some < 1)).all()
