"""The near-duplicate plan: worked examples, its bound, search by graph, storage, answers, audit."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgold.errors import InputError, StorageError, UsageError
from softgold.imaging.duplicates import (
    EmbeddingSpace,
    MatrixSpace,
    answers_from_votes,
    audit_bounds,
    load_plan,
    propose,
    sample_audit,
    save_plan,
    start_plan,
    status,
    update,
)
from softgold.imaging.duplicates.neighbours import closest_pairs
from softgold.models.baselines import Majority
from softgold.readers import read_votes

FIRST = ([0.0, 1.0, 2.1, 3.3, 4.6, 20.0, 21.0, 40.0, 60.5], [0, 0, 0, 0, 0, 1, 1, 2, 3])
SECOND = (
    [0, 1, 3, 4.1, 8, 9.2, 11.5, 12.8, 100.0, 101.01, 103.03, 104.141, 108.08, 109.292, 111.615, 112.928, 300.0, 500.0],
    [0] * 8 + [1] * 8 + [2, 3],
)
NOT_TRANSITIVE = [[0, 1.9, 3, 3.5], [1.9, 0, 3.6, 2], [3, 3.6, 0, 1.8], [3.5, 2, 1.8, 0]]


def spaces_of(x):
    column = np.array(x, dtype=float)[:, None]
    return [
        EmbeddingSpace.of(column, metric="euclidean"),
        EmbeddingSpace.of(column, metric="euclidean", method="hnsw"),
        MatrixSpace.from_function(len(x), lambda i, j: abs(x[i] - x[j])),
    ]


def carry_out(space, is_duplicate):
    """Ask until the plan is finished; the answers come from `is_duplicate`."""
    plan = start_plan(range(len(space)), space)
    while not (plan := propose(plan, space)).finished:
        pairs = zip(plan.awaited.first, plan.awaited.second, strict=True)
        plan = update(plan, [is_duplicate(int(i), int(j)) for i, j in pairs])
    return plan


def pairs_of(part, *, positive=False):
    rows = part.positive if positive else slice(None)
    return np.column_stack([part.first[rows], part.second[rows]]).tolist()


def components_of(plan):
    groups = pd.Series(range(len(plan.ids))).groupby(plan.component).apply(list)
    return sorted(group for group in groups if len(group) > 1)


class TestWorkedExamples:
    @pytest.mark.parametrize("space", spaces_of(FIRST[0]))
    def test_first(self, space):
        cluster = FIRST[1]
        plan = carry_out(space, lambda i, j: cluster[i] == cluster[j])
        assert [pairs_of(part) for part in plan.rounds] == [
            [[0, 1], [1, 2], [2, 3], [3, 4], [5, 6], [6, 7], [7, 8]],
            [[4, 5]],
        ]
        assert pairs_of(plan.rounds[0], positive=True) == [[0, 1], [1, 2], [2, 3], [3, 4], [5, 6]]
        assert components_of(plan) == [[0, 1, 2, 3, 4], [5, 6]]
        now = status(plan)
        assert (now.n_rounds, now.n_pairs, now.bound_rounds, now.bound_pairs) == (2, 8, 3, 9)
        assert now.components == {2: 1, 5: 1}

    @pytest.mark.parametrize("space", spaces_of(SECOND[0]))
    def test_second_attains_the_bound(self, space):
        cluster = SECOND[1]
        plan = carry_out(space, lambda i, j: cluster[i] == cluster[j])
        now = status(plan)
        assert now.pairs == (10, 4, 2, 1)
        assert (now.n_rounds, now.n_pairs, now.bound_rounds) == (4, 17, 4)
        assert not now.exceeds_bound
        assert components_of(plan) == [list(range(8)), list(range(8, 16))]

    def test_without_transitivity_a_component_is_split(self):
        near = {(0, 1), (0, 2), (2, 3)}
        plan = carry_out(MatrixSpace.of(NOT_TRANSITIVE), lambda i, j: (i, j) in near)
        assert [pairs_of(part) for part in plan.rounds] == [[[0, 1], [2, 3]], [[1, 3]]]
        assert components_of(plan) == [[0, 1], [2, 3]]


def fast_clean_instance(seed):
    """Distances for which near duplicates are nearer than anything else: clusters nested at random, then apart."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 6, rng.integers(2, 25))
    n = len(cluster)
    inside, outside = rng.permutation(n * n).reshape(n, n) / n**2, 1 + rng.permutation(n * n).reshape(n, n) / n**2
    matrix = np.triu(np.where(cluster[:, None] == cluster[None, :], inside, outside), 1)
    return cluster, matrix + matrix.T


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 100_000))
def test_under_the_assumptions_all_is_found_within_the_bound(seed):
    cluster, matrix = fast_clean_instance(seed)
    plan = carry_out(MatrixSpace.of(matrix), lambda i, j: cluster[i] == cluster[j])
    expected = sorted(np.flatnonzero(cluster == c).tolist() for c in np.unique(cluster) if (cluster == c).sum() > 1)
    assert components_of(plan) == expected
    assert not status(plan).exceeds_bound


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_any_answers_end_and_no_pair_is_asked_twice(seed, answers):
    rng = np.random.default_rng(answers)
    points = np.random.default_rng(seed).integers(0, 4, (20, 2)).astype(float)
    plan = carry_out(EmbeddingSpace.of(points, metric="euclidean"), lambda i, j: rng.random() < 0.6)
    asked = [tuple(pair) for part in plan.rounds for pair in pairs_of(part)]
    assert len(asked) == len(set(asked))
    assert "this took" in status(plan).sentence


class TestSearch:
    @settings(max_examples=40)
    @given(st.integers(0, 10_000), st.sampled_from(["cosine", "euclidean"]))
    def test_embeddings_give_the_nearest_with_ties_to_the_lower_sample(self, seed, metric):
        rng = np.random.default_rng(seed)
        points = rng.integers(1, 4, (30, 2)).astype(float)
        cluster = rng.integers(0, 4, 30)
        space = EmbeddingSpace.of(points, metric=metric)
        members = np.sort(rng.permutation(30)[:20])
        found = space.nearest(members, cluster[members])
        for place, member in enumerate(members):
            others = [j for j in members if cluster[j] != cluster[member]]
            if not others:
                assert found[place] == -1
                continue
            d = [float(space.distances(np.array([member]), np.array([j]))[0]) for j in others]
            assert members[found[place]] == others[int(np.argmin(d))]

    @pytest.mark.slow
    def test_the_graph_finds_what_the_full_search_finds(self):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(150, 16))
        points = (np.repeat(centres, 8, axis=0) + 0.05 * rng.normal(size=(1200, 16))).astype(np.float32)
        cluster = np.repeat(np.arange(150), 8)
        exact, graph = (EmbeddingSpace.of(points, method=method) for method in ("exact", "hnsw"))
        members = np.arange(1200)
        for groups in (members, cluster, cluster // 30):
            one, other = (space.nearest(members, groups) for space in (exact, graph))
            far, near = (exact.distances(members, found) for found in (other, one))
            assert (one == other).mean() > 0.98
            assert (far >= near - 1e-7).all()

    def test_the_cosine_does_not_see_lengths(self):
        points = np.random.default_rng(1).normal(size=(40, 5))
        scaled = points * np.linspace(0.1, 9, 40)[:, None]
        members = np.arange(40)
        one, two = (EmbeddingSpace.of(part).nearest(members, members) for part in (points, scaled))
        np.testing.assert_array_equal(one, two)

    def test_closest_pairs(self):
        points = np.random.default_rng(2).normal(size=(60, 3))
        space = EmbeddingSpace.of(points, metric="euclidean")
        every = sorted((float(np.linalg.norm(points[i] - points[j])), i, j) for i, j in combinations(range(60), 2))
        banned = {(i, j) for _, i, j in every[:5]}
        first, second, distance = closest_pairs(space, 30, exclude=banned)
        expected = every[5:35]
        assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(i, j) for _, i, j in expected]
        np.testing.assert_allclose(distance, [d for d, _, _ in expected], atol=1e-12)
        distances = MatrixSpace.from_function(60, lambda i, j: float(np.linalg.norm(points[i] - points[j])))
        np.testing.assert_array_equal(second, closest_pairs(distances, 30, exclude=banned)[1])
        by_graph = closest_pairs(EmbeddingSpace.of(points, metric="euclidean", method="hnsw"), 30, exclude=banned)
        np.testing.assert_array_equal(first, by_graph[0])

    @pytest.mark.parametrize(
        ("embeddings", "message"),
        [
            ([[1.0, np.nan], [0, 1]], "row 0 is not"),
            ([[1.0, 0], [0, 0]], "row 1 is"),
            ([1.0, 2.0], "shape"),
            ([["a"], ["b"]], "must be numbers"),
            (np.empty((3, 0)), "shape"),
        ],
    )
    def test_bad_embeddings(self, embeddings, message):
        with pytest.raises(InputError, match=message):
            EmbeddingSpace.of(embeddings)

    def test_bad_distances(self):
        with pytest.raises(InputError, match="symmetric"):
            MatrixSpace.of([[0, 1], [2, 0]])
        with pytest.raises(InputError, match="square"):
            MatrixSpace.of([[0, 1]])
        with pytest.raises(UsageError, match="metric"):
            EmbeddingSpace.of([[1.0]], metric="city")


class TestPlan:
    space = MatrixSpace.of(NOT_TRANSITIVE)

    def test_rounds_take_turns(self):
        plan = start_plan("abcd", self.space)
        with pytest.raises(UsageError, match="no round awaits"):
            update(plan, [])
        plan = propose(plan, self.space)
        with pytest.raises(UsageError, match="round 1 awaits its answers"):
            propose(plan, self.space)
        with pytest.raises(InputError, match="2 values of 0 and 1"):
            update(plan, [1])
        with pytest.raises(InputError, match="2 values of 0 and 1"):
            update(plan, [1, 2])
        assert update(plan, [0, 0]).finished

    def test_one_component_of_all_needs_no_further_round(self):
        plan = carry_out(MatrixSpace.of([[0, 1], [1, 0]]), lambda i, j: True)
        assert (len(plan.rounds), plan.finished) == (1, True)
        assert propose(plan, MatrixSpace.of([[0, 1], [1, 0]])) is plan

    def test_other_distances_are_refused(self):
        plan = start_plan("abcd", self.space)
        with pytest.raises(InputError, match="not those that the plan was started with"):
            propose(plan, MatrixSpace.of(np.array(NOT_TRANSITIVE) * 2))

    @pytest.mark.parametrize("ids", ["abc", "aabc"])
    def test_bad_ids(self, ids):
        with pytest.raises(InputError, match="ids"):
            start_plan(ids, self.space)

    def test_one_sample(self):
        with pytest.raises(InputError, match="two samples"):
            start_plan("a", MatrixSpace.of([[0]]))


class TestStorage:
    def test_a_plan_comes_back_as_it_was(self, tmp_path):
        space = TestPlan.space
        plan = propose(update(propose(start_plan(["007", "ä", "x y", '"q"'], space), space), [1, 1]), space)
        save_plan(plan, tmp_path / "plan.json")
        again = load_plan(tmp_path / "plan.json")
        pd.testing.assert_frame_equal(again.questions(), plan.questions())
        assert (again.digest, again.finished, len(again.rounds)) == (plan.digest, False, 2)
        one, two = (update(part, [0]) for part in (plan, again))
        assert status(one) == status(two)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda state: state.pop("ids"), "damaged: 'ids'"),
            (lambda state: state.update(version=9), "has version 9"),
            (lambda state: state.update(format="other"), "is not a near-duplicate plan"),
            (lambda state: state.update(ids=["a", "a", "b", "c"]), "a duplicated id"),
            (lambda state: state["rounds"][0].update(first=[0]), "different lengths"),
            (lambda state: state["rounds"][0].update(second=[1, 99]), "not of two samples"),
            (lambda state: state["rounds"][0].update(first=["x", 2]), "damaged"),
            (lambda state: state["rounds"][0].update(positive=[0, 7]), "neither 0 nor 1"),
            (lambda state: state.update(rounds=state["rounds"] * 2), "has no answers"),
            (lambda state: state.update(finished=True), "finished and awaits"),
            (lambda state: state.update(rounds=[None]), "damaged"),
        ],
    )
    def test_a_damaged_plan(self, tmp_path, change, message):
        path = tmp_path / "plan.json"
        save_plan(propose(start_plan("abcd", TestPlan.space), TestPlan.space), path)
        state = json.loads(path.read_text())
        change(state)
        path.write_text(json.dumps(state))
        with pytest.raises(StorageError, match=message):
            load_plan(path)

    @pytest.mark.parametrize("text", ["", "{", "[]", "\x00\xff"])
    def test_files_that_are_none(self, tmp_path, text):
        (tmp_path / "plan.json").write_text(text)
        with pytest.raises(StorageError, match="plan"):
            load_plan(tmp_path / "plan.json")
        with pytest.raises(StorageError, match="cannot read"):
            load_plan(tmp_path / "none.json")


def votes_of(answers):
    rows = [(item, f"w{i}", vote) for item, votes in answers.items() for i, vote in enumerate(votes)]
    return read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]))


class TestAnswers:
    plan = propose(start_plan("abcd", TestPlan.space), TestPlan.space)

    def test_majority(self):
        votes = votes_of({"pair0000002": [1, 1, 0], "pair0000001": [1, 0]})
        assert answers_from_votes(self.plan, votes, Majority()).tolist() == [False, True]
        assert answers_from_votes(self.plan, votes, Majority(), threshold=0.4).tolist() == [True, True]

    def test_pairs_of_earlier_rounds_may_be_there(self):
        later = propose(update(self.plan, [1, 1]), TestPlan.space)
        votes = votes_of({"pair0000001": [1], "pair0000003": [1]})
        assert answers_from_votes(later, votes, Majority()).tolist() == [True]

    def test_a_pair_without_votes(self):
        votes = votes_of({"pair0000001": [1]})
        with pytest.raises(InputError, match="1 of 2 pairs of round 1 have no vote, 'pair0000002' first"):
            answers_from_votes(self.plan, votes, Majority())
        assert answers_from_votes(self.plan, votes, Majority(), missing="negative").tolist() == [True, False]

    def test_an_item_that_is_no_pair(self):
        with pytest.raises(InputError, match="'cat' is not a pair of this plan"):
            answers_from_votes(self.plan, votes_of({"cat": [1]}), Majority())


class TestAudit:
    def test_the_published_bounds(self):
        sample = pd.DataFrame(
            {"source": np.repeat(["pHash", "SSIM", "ViT"], 150), "pool": 5000, "same_component": False}
        )
        positive = np.zeros(450, dtype=bool)
        positive[300:326] = True
        bounds = audit_bounds(sample, positive)
        assert [(bound.source, bound.n_duplicates) for bound in bounds] == [("pHash", 0), ("SSIM", 0), ("ViT", 26)]
        assert [round(100 * bound.high, 2) for bound in bounds] == [2.50, 2.50, 24.19]
        assert round(100 * bounds[2].low, 2) == 12.11
        assert bounds[0].at_most == pytest.approx(5000 * bounds[0].high)

    def test_a_sample_has_new_pairs_that_are_near_elsewhere(self):
        rng = np.random.default_rng(0)
        points = rng.normal(size=(80, 4))
        plan = carry_out(EmbeddingSpace.of(points), lambda i, j: rng.random() < 0.3)
        others = {name: EmbeddingSpace.of(rng.normal(size=(80, 4))) for name in ("a", "b")}
        sample = sample_audit(plan, others, top=100, per_source=30, seed=1)
        assert sample["source"].tolist() == ["a"] * 30 + ["b"] * 30
        drawn = set(zip(sample["first"], sample["second"], strict=True))
        asked = set(zip(plan.questions()["first"], plan.questions()["second"], strict=True))
        assert len(drawn) == 60
        assert not drawn & asked
        distance = closest_pairs(others["a"], 100 + len(asked))[2]
        assert set(sample["distance"][:30]) <= set(distance)
        assert sample["item"].is_unique

    def test_the_missed_are_those_in_no_component(self):
        sample = pd.DataFrame({"source": "a", "pool": 10, "same_component": [True, False, False]})
        [bound] = audit_bounds(sample, [1, 1, 0])
        assert (bound.n_duplicates, bound.n_missed) == (2, 1)

    def test_bad_input(self):
        plan = start_plan("abcd", TestPlan.space)
        with pytest.raises(InputError, match="'x' has 3 samples, and the plan has 4"):
            sample_audit(plan, {"x": EmbeddingSpace.of(np.eye(3))})
        with pytest.raises(InputError, match="at least one"):
            sample_audit(plan, {})
        with pytest.raises(InputError, match="values of 0 and 1"):
            audit_bounds(pd.DataFrame({"source": ["a"], "pool": [1], "same_component": [False]}), [2])
