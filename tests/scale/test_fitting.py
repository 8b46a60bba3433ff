"""A fit of votes on disk has the bits of a fit in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fixtures.parts import PART_VOTES, TABLES, with_repeats
from softgold.errors import UsageError
from softgold.models.base import Fit, find_model, fit
from softgold.models.crowd import models
from softgold.models.crowd.chunks import part_chunks, vote_chunks
from softgold.models.crowd.sums import GROUP_CHUNKS
from softgold.readers import read_votes
from softgold.scale.fitting import StreamedFit, fit_store
from softgold.scale.store import VoteStore

pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.SoftgoldWarning")

StoreOf = Callable[..., VoteStore]
CHUNK = 12
FAST = ("three readers", "abstentions")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few votes in memory too, so that there are several groups of them."""
    for chunks in (vote_chunks, part_chunks):
        monkeypatch.setattr(models, chunks.__name__, partial(chunks, size=CHUNK))


def on_disk(store: VoteStore, model: str = "two-class", **options: Any) -> StreamedFit:
    settings = find_model(model).settings(**options)
    return fit_store(store, model=model, settings=settings, part_votes=PART_VOTES, chunk_votes=CHUNK)


def check_bits(found: StreamedFit, expected: Fit) -> None:
    labels = pd.concat([soft.to_frame() for _, _, soft in found.soft_labels()], ignore_index=True)
    others = expected.posterior.soft_labels().to_frame()
    pd.testing.assert_frame_equal(labels, others, check_exact=True, check_dtype=False)
    people, others = found.posterior.annotators(), expected.posterior.annotators()
    pd.testing.assert_frame_equal(people.drop(columns="agreement"), others.drop(columns="agreement"), check_exact=True)
    assert people["agreement"].to_numpy() == pytest.approx(others["agreement"].to_numpy(), abs=1e-12, nan_ok=True)
    here, there = found.diagnostics, expected.diagnostics
    for name in ("elbo", "steps", "sweeps", "converged", "reason", "learned", "components"):
        assert getattr(here, name) == getattr(there, name), name
    notices = [[n.text for n in side.notices if n.kind != "reader"] for side in (here, there)]
    assert notices[0] == notices[1]


@pytest.mark.parametrize("model", ["two-class", "glad"])
@pytest.mark.parametrize(
    "kind", [kind if kind in FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in TABLES]
)
def test_sweeps_over_disk_and_memory_agree_to_the_bit(
    kind: str, model: str, vote_frame: pd.DataFrame, store_of: StoreOf
) -> None:
    rows = TABLES[kind](vote_frame)
    expected = fit(read_votes(rows), model=model, engine="coordinate", max_steps=15)
    found = on_disk(store_of(rows), model, engine="coordinate", max_steps=15)
    check_bits(found, expected)
    mine, theirs = found.summary(), expected.summary()
    assert (mine.positives, mine.adversaries, mine.items) == (theirs.positives, theirs.adversaries, theirs.items)
    assert mine.expected_wrong == pytest.approx(theirs.expected_wrong)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["mean", "all"])
def test_repeats_that_stay_agree_to_the_bit(rule: str, vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = with_repeats(vote_frame)
    assert len(rows) > 2 * GROUP_CHUNKS * CHUNK
    votes = read_votes(rows, duplicates=rule)  # type: ignore[arg-type]
    check_bits(on_disk(store_of(rows, duplicates=rule), engine="coordinate"), fit(votes, engine="coordinate"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in any order", "three readers"])
def test_mini_batches_from_disk_agree_to_the_bit(kind: str, vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = TABLES[kind](vote_frame)
    options: dict[str, Any] = {"engine": "svi", "batch_items": 30, "max_steps": 60}
    check_bits(on_disk(store_of(rows), **options), fit(read_votes(rows), **options))


@pytest.mark.slow
def test_a_fit_resumed_from_any_state_is_the_uninterrupted_one(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    store, states = store_of(vote_frame), []
    settings = find_model("two-class").settings(engine="coordinate")
    sizes: dict[str, Any] = {"settings": settings, "part_votes": PART_VOTES, "chunk_votes": CHUNK}
    whole = fit_store(store, **sizes, on_progress=lambda progress: states.append(progress.snapshot()))
    model = find_model("two-class")
    labels = [soft.p for _, _, soft in whole.soft_labels()]
    for state in (states[3], states[-1]):
        arrays = state.to_arrays()
        assert all(len(np.atleast_1d(array)) != store.n_items for array in arrays.values())  # p is not stored
        again = fit_store(store, **sizes, resume=model.state(arrays))
        assert all(np.array_equal(soft.p, p) for (_, _, soft), p in zip(again.soft_labels(), labels, strict=True))


def test_models_that_need_memory_say_so(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    with pytest.raises(UsageError, match="the model majority reads votes into memory"):
        fit_store(store_of(vote_frame), model="majority", part_votes=PART_VOTES)
    with pytest.raises(UsageError, match="the published recipe"):
        on_disk(store_of, "glad", init="paper")  # type: ignore[arg-type]
