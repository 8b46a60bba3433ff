"""One contract for every registered model, with each of its engines.

Models are taken from the registry: one that is added there is tested here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from softgold.errors import ConvergenceWarning, InputError, UsageError
from softgold.models.base import (
    DEFAULT_MODEL,
    MODELS,
    Arrays,
    Diagnostics,
    Fit,
    FitState,
    Model,
    OnProgress,
    Posterior,
    find_model,
    fit,
)
from softgold.readers import read_votes
from softgold.runs import open_run
from softgold.tables.soft_labels import COLUMNS, SoftLabels
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]

ENGINES = ("coordinate", "svi")
N_TWINS = 12


@dataclass(frozen=True)
class Case:
    """A registered model, with an engine where it has one."""

    model: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def stochastic(self) -> bool:
        return self.options.get("engine") == "svi"

    @property
    def slow(self) -> bool:
        return self.stochastic or self.options.get("prior") == "paper"

    @property
    def briefly(self) -> dict[str, Any]:
        """Options for a promise that must hold wherever a fit stops."""
        return {"max_steps": 40} if self.slow else {}

    def fit(self, votes: VoteTable, **more: Any) -> Fit:
        return fit(votes, model=self.model, **self.options, **more)

    def soft_labels(self, votes: VoteTable, **more: Any) -> pd.Series[float]:
        labels = self.fit(votes, **more).posterior.soft_labels()
        return pd.Series(labels.p, index=labels.item_ids)

    def __str__(self) -> str:
        return " ".join([self.model, *self.options.values()])


CASES = [
    Case(name, options)
    for name in MODELS
    for options in ([{"engine": engine} for engine in ENGINES] if "engine" in find_model(name).options else [{}])
]
CASES += [Case("glad", {"engine": "coordinate", "prior": "paper"})]  # vague: small causes have large effects
STOCHASTIC = [case for case in CASES if case.stochastic]
unsettled = pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")


@pytest.fixture(scope="module")
def votes(crowd: Any) -> VoteTable:
    """The common table, its first items once more at the end under other ids."""
    frame = crowd.votes.to_frame()
    twins = frame[frame["item"].isin(crowd.votes.item_ids[:N_TWINS])]
    return read_votes(pd.concat([frame, twins.assign(item="twin of " + twins["item"]).iloc[::-1]]))


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, marks=pytest.mark.slow) if case.slow else case for case in CASES],
    ids=str,
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="session")
def fits() -> dict[str, Fit]:
    """Fits that were made already: pytest would drop one when the case changes."""
    return {}


@pytest.fixture(scope="module")
def fitted(case: Case, votes: VoteTable, fits: dict[str, Fit]) -> Fit:
    if str(case) not in fits:
        fits[str(case)] = case.fit(votes)
    return fits[str(case)]


@pytest.fixture(scope="module")
def brief(case: Case, votes: VoteTable, fits: dict[str, Fit]) -> FloatArray:
    """Soft labels of a fit that stops early where fits take long."""
    name = f"{case}, briefly" if case.briefly else str(case)
    if name not in fits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits[name] = case.fit(votes, **case.briefly)
    return fits[name].posterior.soft_labels().p


def largest_gap(case: Case, here: FloatArray, there: FloatArray) -> None:
    """Check that two fits of the same votes agree."""
    assert np.abs(there - here).max() < (0.005 if case.stochastic else 1e-9)


# --- what a fit gives ---


def test_a_fit_says_what_it_is(case: Case, fitted: Fit) -> None:
    assert isinstance(fitted, Fit)
    assert fitted.model == case.model == find_model(case.model).name
    assert isinstance(fitted.posterior, Posterior)
    assert isinstance(fitted.diagnostics, Diagnostics)
    assert fitted.settings == find_model(case.model).settings(**case.options)
    assert fitted.diagnostics.converged
    assert fitted.diagnostics.warnings == ()


def test_one_soft_label_per_item_in_order(case: Case, fitted: Fit, votes: VoteTable) -> None:
    labels = fitted.posterior.soft_labels()
    assert labels.method == case.model
    assert labels.item_ids.equals(votes.item_ids)
    assert fitted.posterior.item_ids.equals(votes.item_ids)
    for values in (labels.p, labels.expected_vote):
        assert values.shape == (votes.n_items,)
        assert values.dtype == np.float64
        assert ((values >= 0) & (values <= 1)).all()
    assert labels.n_votes.tolist() == votes.item_counts.tolist()
    assert labels.n_positive.tolist() == votes.item_positives.tolist()
    assert tuple(labels.to_frame().columns) == COLUMNS


def test_one_row_per_annotator_in_order(fitted: Fit, votes: VoteTable) -> None:
    frame = fitted.posterior.annotators()
    assert frame["annotator"].tolist() == votes.annotator_ids.tolist()
    assert fitted.posterior.annotator_ids.equals(votes.annotator_ids)
    assert frame["n_votes"].tolist() == votes.annotator_counts.tolist()
    assert frame["agreement"].between(0, 1).all()
    assert np.isfinite(frame.drop(columns="annotator").to_numpy(dtype=float)).all()


def test_soft_labels_are_on_the_side_of_the_truth(fitted: Fit, crowd: Any) -> None:
    right = (fitted.posterior.soft_labels().p[: len(crowd.label)] >= 0.5) == crowd.label
    assert right.mean() > 0.75


# --- promises about p ---


def test_predict_on_the_fitted_votes_gives_the_fit(fitted: Fit, votes: VoteTable) -> None:
    again, labels = fitted.posterior.predict(votes), fitted.posterior.soft_labels()
    assert np.array_equal(again.p, labels.p)
    assert again.to_frame().equals(labels.to_frame())


def test_predict_on_some_of_the_items_gives_their_labels(fitted: Fit, votes: VoteTable) -> None:
    frame = votes.to_frame()
    some = read_votes(frame[frame["item"].isin(["i7", "i70", "i3"])].iloc[::-1])
    labels = fitted.posterior.soft_labels()
    expected = labels.p[votes.item_ids.get_indexer(some.item_ids)]
    assert fitted.posterior.predict(some).p == pytest.approx(expected, abs=1e-12)  # annotators in another order


def test_identical_votes_give_identical_labels(fitted: Fit, votes: VoteTable) -> None:
    twins = votes.item_ids.get_indexer([f"twin of i{item}" for item in range(N_TWINS)])
    frame = fitted.posterior.soft_labels().to_frame().drop(columns="item")
    assert frame.iloc[twins].reset_index(drop=True).equals(frame.head(N_TWINS))


@unsettled
def test_three_readers_give_eight_labels_at_most(case: Case) -> None:
    """One p per vote pattern, wherever in a table of several chunks and batches an item stands."""
    rng = np.random.default_rng(3)
    truth = rng.random(6000) < 0.2
    answers = truth[:, None] ^ (rng.random((6000, 3)) < [0.05, 0.1, 0.15])
    items, readers = np.divmod(np.arange(18_000), 3)
    table = VoteTable.from_codes(items, readers, answers.ravel(), map(str, range(6000)), list("abc"))
    p = case.soft_labels(table, **case.briefly).to_numpy()
    pattern = answers @ [4, 2, 1]
    assert len(np.unique(pattern)) == 8
    assert all(len(np.unique(p[pattern == one])) == 1 for one in range(8))
    assert p[pattern == 0].max() < 0.1
    assert p[pattern == 7].min() > 0.85


@unsettled
def test_the_order_of_rows_does_not_matter(case: Case, brief: FloatArray, votes: VoteTable) -> None:
    shuffled = read_votes(votes.to_frame().sample(frac=1, random_state=1))
    assert not shuffled.item_ids.equals(votes.item_ids)
    assert not shuffled.annotator_ids.equals(votes.annotator_ids)
    there = case.soft_labels(shuffled, **case.briefly)[votes.item_ids]
    largest_gap(case, brief, there.to_numpy())


@unsettled
def test_names_do_not_matter(case: Case, brief: FloatArray, votes: VoteTable) -> None:
    frame = votes.to_frame()
    renamed = frame.assign(item="ü/" + frame["item"].str[::-1], annotator=frame["annotator"].str.replace("a", "9"))
    largest_gap(case, brief, case.soft_labels(read_votes(renamed), **case.briefly).to_numpy())


@unsettled
def test_swapping_the_votes_swaps_the_labels(case: Case, brief: FloatArray, votes: VoteTable) -> None:
    frame = votes.to_frame()
    swapped = case.soft_labels(read_votes(frame.assign(vote=1 - frame["vote"])), **case.briefly)
    apart = np.abs(swapped.to_numpy() - (1 - brief))
    assert apart.max() < (0.01 if case.stochastic else 1e-9)


@pytest.mark.slow
@unsettled
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")  # abilities from 1 to 500: the image is in doubt
def test_the_published_prior_keeps_its_promises_with_svi(votes: VoteTable) -> None:
    case = Case("glad", {"engine": "svi", "prior": "paper"})
    frame = votes.to_frame()
    plain = case.soft_labels(votes, **case.briefly)
    shuffled = case.soft_labels(read_votes(frame.sample(frac=1, random_state=1)), **case.briefly)
    swapped = case.soft_labels(read_votes(frame.assign(vote=1 - frame["vote"])), **case.briefly)
    largest_gap(case, plain.to_numpy(), shuffled[plain.index].to_numpy())
    largest_gap(case, plain.to_numpy(), 1 - swapped[plain.index].to_numpy())


@unsettled
def test_the_same_call_gives_the_same_fit(
    case: Case, votes: VoteTable, assert_same_posterior: Callable[..., None]
) -> None:
    first, again = (case.fit(votes, **case.briefly) for _ in range(2))
    assert_same_posterior(again.posterior, first.posterior)
    assert again.diagnostics.elbo == first.diagnostics.elbo


@pytest.mark.slow
@pytest.mark.parametrize("case", STOCHASTIC, ids=str, indirect=True)
def test_seeds_hardly_matter(case: Case, fitted: Fit, votes: VoteTable) -> None:
    apart = np.abs(case.soft_labels(votes, seed=1).to_numpy() - fitted.posterior.soft_labels().p)
    assert 0 < np.quantile(apart, 0.99) < 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")  # as above
def test_seeds_hardly_matter_with_the_published_prior(votes: VoteTable) -> None:
    case = Case("glad", {"engine": "svi", "prior": "paper"})
    first, second = (case.soft_labels(votes, seed=seed).to_numpy() for seed in (0, 1))
    assert 0 < np.quantile(np.abs(first - second), 0.99) < 0.01


# --- draws ---


def test_sampled_soft_labels_are_shares_of_draws(fitted: Fit) -> None:
    exact = fitted.posterior.soft_labels()
    sampled = fitted.posterior.sample_soft_labels(400, seed=3)
    assert np.array_equal(sampled.p, np.rint(sampled.p * 400) / 400)
    assert (np.abs(sampled.p - exact.p) <= 6 * np.sqrt(exact.p * (1 - exact.p) / 400)).all()
    assert np.array_equal(fitted.posterior.sample_soft_labels(400, seed=3).p, sampled.p)
    kept = exact.to_frame().columns.difference(["p", "uncertainty", "entropy"])
    assert sampled.to_frame()[kept].equals(exact.to_frame()[kept])
    with pytest.raises(UsageError, match="n_samples must be a whole number of at least 1, got 0"):
        fitted.posterior.sample_soft_labels(0)


def test_another_seed_gives_other_draws_where_p_is_open(fitted: Fit) -> None:
    open_items = fitted.posterior.soft_labels().uncertainty > 0.01
    first, second = (fitted.posterior.sample_soft_labels(400, seed=seed).p[open_items] for seed in (1, 2))
    assert open_items.any() != np.array_equal(first, second)


# --- storage ---


def test_arrays_hold_the_whole_posterior(
    fitted: Fit, votes: VoteTable, assert_same_posterior: Callable[..., None]
) -> None:
    arrays = fitted.posterior.to_arrays()
    assert all(isinstance(array, np.ndarray) and array.dtype.kind in "fiu" for array in arrays.values())
    again = find_model(fitted.model).posterior(arrays, votes.item_ids, votes.annotator_ids, fitted.settings)
    assert_same_posterior(again, fitted.posterior)
    assert np.array_equal(again.predict(votes).p, fitted.posterior.soft_labels().p)


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_another_table_are_refused(votes: VoteTable, name: str) -> None:
    model = find_model(name)
    found = Case(name, {"engine": "coordinate"} if "engine" in model.options else {}).fit(votes)
    with pytest.raises(ValueError, match="item_"):
        model.posterior(found.posterior.to_arrays(), votes.item_ids[1:], votes.annotator_ids, found.settings)
    with pytest.raises(ValueError, match=r"annotator_|skill_"):
        model.posterior(found.posterior.to_arrays(), votes.item_ids, votes.annotator_ids[1:], found.settings)


def test_a_run_comes_back(
    fitted: Fit, votes: VoteTable, tmp_path: Path, assert_same_posterior: Callable[..., None]
) -> None:
    fitted.save(tmp_path / "run")
    again = open_run(tmp_path / "run").fit
    assert (again.model, again.settings) == (fitted.model, fitted.settings)
    assert_same_posterior(again.posterior, fitted.posterior)
    for name, value in vars(fitted.diagnostics).items():
        if name != "seconds":
            assert getattr(again.diagnostics, name) == value, name


# --- what is refused ---


@pytest.mark.parametrize("name", MODELS)
def test_unknown_options_are_refused(votes: VoteTable, name: str) -> None:
    with pytest.raises(UsageError, match=f"colour has no meaning for the model {name}; it has "):
        fit(votes, model=name, colour="red")


def test_unknown_models_are_refused(votes: VoteTable) -> None:
    with pytest.raises(UsageError, match="model must be one of two-class, glad, majority, mean; got 'em'"):
        fit(votes, model="em")


@pytest.mark.parametrize("name", MODELS)
def test_a_table_without_votes_is_refused(name: str) -> None:
    empty = VoteTable.from_codes([], [], [], [], [])
    with pytest.raises(InputError, match="no votes to fit"):
        fit(empty, model=name)


def test_nothing_to_predict_from_is_refused(fitted: Fit) -> None:
    with pytest.raises(InputError, match="no votes to predict from"):
        fitted.posterior.predict(VoteTable.from_codes([], [], [], [], []))


# --- the registry ---


def test_every_entry_leads_to_a_model_of_that_name() -> None:
    assert DEFAULT_MODEL in MODELS
    for name in MODELS:
        assert isinstance(find_model(name), Model)
        assert find_model(name).name == name


@dataclass(frozen=True)
class ToySettings:
    """How far from one half a vote leads."""

    step: float = 0.25


@dataclass(frozen=True, eq=False)
class ToyPosterior(Posterior):
    """p is 1/2 plus or minus a step: whether there are more yes votes than no votes."""

    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    step: float
    counts: NDArray[np.int64]
    positives: FloatArray

    def soft_labels(self) -> SoftLabels:
        p = 0.5 + self.step * np.sign(2 * self.positives - self.counts)
        return SoftLabels(self.item_ids, p, p, self.counts, self.positives, "toy")

    def annotators(self) -> pd.DataFrame:
        return pd.DataFrame({"annotator": self.annotator_ids, "n_votes": 1, "agreement": 1.0})

    def predict(self, votes: VoteTable) -> SoftLabels:
        return TOY.fit(votes, ToySettings(self.step), lambda progress: None, None).posterior.soft_labels()

    def sample_soft_labels(self, n_samples: int = 1000, *, seed: int = 0) -> SoftLabels:
        return self.soft_labels()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts, "positives": self.positives}


class ToyModel(Model):
    """A model that softgold has never heard of."""

    name, options = "toy", ("step",)

    def settings(self, **options: Any) -> ToySettings:
        return ToySettings(**options)

    def fit(self, votes: VoteTable, settings: Any, on_progress: OnProgress, resume: FitState | None) -> Fit:
        counted = votes.item_counts, votes.item_positives
        return Fit(
            self.name,
            settings,
            votes,
            ToyPosterior(votes.item_ids, votes.annotator_ids, settings.step, *counted),
            Diagnostics(),
        )

    def posterior(
        self, arrays: Arrays, item_ids: pd.Index[str], annotator_ids: pd.Index[str], settings: Any
    ) -> ToyPosterior:
        return ToyPosterior(item_ids, annotator_ids, settings.step, arrays["counts"], arrays["positives"])


TOY = ToyModel()


def test_one_line_adds_a_model(
    crowd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    """From fit to a run on disk and soft labels of new votes, in Python and on the command line."""
    monkeypatch.setitem(MODELS, "toy", f"{__name__}:TOY")
    fitted = fit(crowd.votes, model="toy", step=0.375)
    assert fitted.model == "toy"
    fitted.save(tmp_path / "run")
    again = open_run(tmp_path / "run").fit
    assert again.settings == ToySettings(0.375)
    new = pd.DataFrame({"item": ["x", "y"], "annotator": ["a0", "new"], "vote": [1, 0]})
    assert again.posterior.predict(read_votes(new)).p.tolist() == [0.875, 0.125]
    new.to_csv(tmp_path / "new.csv", index=False)
    answer = cli("predict", tmp_path / "run", tmp_path / "new.csv", "--quiet")
    assert answer.code == 0
    assert [float(line.split(",")[1]) for line in answer.out.splitlines()[1:]] == [0.875, 0.125]
    answer = cli("fit", tmp_path / "new.csv", "--model", "toy", "-o", tmp_path / "second", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert open_run(tmp_path / "second").fit.posterior.soft_labels().p.tolist() == [0.75, 0.25]
    answer = cli("report", tmp_path / "second", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert "toy" in (tmp_path / "second" / "report.html").read_text()
    with pytest.raises(UsageError, match="a fit of toy cannot be resumed"):
        find_model("toy").state({})
