"""Models against hard and soft labels: the numbers of the metrics, ranks, resampling, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from softgold import evaluate, read_scores, read_soft_labels
from softgold.errors import InputError, UsageError
from softgold.evaluation import METRICS, Evaluation, read_groups, read_tasks
from softgold.evaluation.measures import ranks
from softgold.evaluation.words import lead_words, notice_words, r_squared_words, swap_words
from softgold.experts import ReleasedLabels
from softgold.metrics import (
    annotation_bootstrap,
    balanced_brier,
    bootstrap_metrics,
    brier_score,
    expected_calibration_error,
    log_loss,
    precision_at_k,
    r_squared,
    recall_at_k,
    soft_auroc,
    soft_average_precision,
    wilson_interval,
)
from softgold.output import json_text
from softgold.runs.results import RESULTS, plain_result, read_result, write_result
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

N, MODELS = 240, ("north", "south", "east")


def table(n: int = N, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n_votes = rng.integers(3, 9, n)
    n_positive = rng.binomial(n_votes, rng.beta(0.6, 0.9, n))
    p = (n_positive + 0.5) / (n_votes + 1)
    return pd.DataFrame(
        {"item": [f"i{i}" for i in range(n)], "p": p, "n_votes": n_votes, "n_positive": n_positive, "expected_vote": p}
    )


def labels(n: int = N) -> SoftLabels:
    return read_soft_labels(table(n))


def scores(n: int = N, *, seed: int = 4) -> Scores:
    rng = np.random.default_rng(seed)
    p = table(n)["p"].to_numpy()
    values = np.clip(p[:, None] + rng.normal(0, [0.2, 0.3, 0.5], (n, 3)), 0.001, 0.999)
    return Scores(pd.Index([f"i{i}" for i in range(n)], dtype="str"), MODELS, values)


def quick(*arguments: object, **options: object) -> Evaluation:
    return evaluate(*arguments, **{"n_bootstrap": 60, "n_vote_bootstrap": 40, **options})


def plain(result: Evaluation) -> str:
    return json_text(plain_result(result))


def texts(result: Evaluation) -> list[str]:
    return [notice.text for notice in result.notices]


def value(result: Evaluation, metric: str, model: str = "south") -> float:
    return float(result.only.wide().loc[model, metric])


@pytest.fixture(scope="module")
def result() -> Evaluation:
    return quick(labels(), scores(), k=(100, 500))


def test_every_metric_is_that_of_the_metrics_package(result: Evaluation) -> None:
    p, q = labels().p, scores().of("south")
    y = (p >= 0.5).astype(float)
    expected = {
        "auroc": roc_auc_score(y, q),
        "ap": average_precision_score(y, q),
        "precision_at_100": precision_at_k(y, q, 100),
        "recall_at_100": recall_at_k(y, q, 100),
        "soft_auroc": soft_auroc(p, q),
        "soft_ap": soft_average_precision(p, q),
        "soft_precision_at_100": precision_at_k(p, q, 100),
        "brier": brier_score(p, q),
        "balanced_brier": balanced_brier(p, q),
        "log_loss": log_loss(p, q),
        "ece": expected_calibration_error(p, q),
    }
    found = result.only.wide().loc["south"].to_dict()
    assert set(found) == set(expected)
    assert found == pytest.approx(expected, abs=1e-12)
    assert result.hard == "p >= 0.5"
    assert result.only.base_rate == y.mean()
    assert result.only.soft_base_rate == pytest.approx(p.mean())


def test_intervals_are_those_of_the_bootstrap_and_of_wilson(result: Evaluation) -> None:
    p, values = labels().p, scores().values
    direct = bootstrap_metrics(["soft_auroc", "log_loss"], p, values, n_bootstrap=60, seed=0)
    rows = result.only.table.set_index(["metric", "model"])
    for metric, engine in (("soft_auroc", "soft_auroc"), ("log_loss", "log_loss")):
        np.testing.assert_allclose(rows.loc[metric]["low"], direct[engine].low, rtol=1e-12)
        np.testing.assert_allclose(rows.loc[metric]["high"], direct[engine].high, rtol=1e-12)
    row = rows.loc[("precision_at_100", "east")]
    assert (row["low"], row["high"]) == pytest.approx(wilson_interval(100 * row["value"], 100))
    assert set(result.only.table["interval"]) == {"bootstrap", "wilson"}


def test_ranks_and_who_beats_whom(result: Evaluation) -> None:
    rows = result.only.table.set_index(["metric", "model"])["rank"]
    for metric in ("auroc", "soft_auroc", "brier", "log_loss"):
        assert rows.loc[metric].to_dict() == {"north": 1, "south": 2, "east": 3}
    for metric in ("auroc", "brier"):
        beats = result.only.beats[metric]
        assert np.isnan(np.diag(beats)).all()
        assert beats[0, 2] > 0.95
        assert beats[0, 2] + beats[2, 0] <= 1
    p, values = labels().p, scores().values
    direct = bootstrap_metrics(["soft_auroc"], p, values, n_bootstrap=60, seed=0)["soft_auroc"]
    assert result.only.beats["soft_auroc"][0, 1] == pytest.approx(direct.compare(0, 1).p_better)


def test_ordinary_beside_soft_on_a_case_that_swaps() -> None:
    soft = read_soft_labels(pd.DataFrame({"item": list("abcde"), "p": [0.9, 0.6, 0.4, 0.4, 0.1]}))
    frame = pd.DataFrame({"item": list("abcde"), "x": [5, 4, 1, 2, 3], "y": [9, 5, 6, 3, 1], "z": [1, 2, 3, 4, 5]})
    found = quick(soft, read_scores(frame)).only.comparisons[0]
    assert (found.ordinary, found.soft) == ("auroc", "soft_auroc")
    assert (found.best_ordinary.models, found.best_soft.models) == (("x",), ("y",))
    assert [(swap.first, swap.second) for swap in found.swaps] == [("x", "y")]
    assert found.ties == ()
    assert found.moved == ("x", "y")
    hard, both = [1, 1, 0, 0, 0], [frame[name] for name in "xyz"]
    ordinary, soft_values = [soft_auroc(hard, s) for s in both], [soft_auroc(soft.p, s) for s in both]
    assert found.r_squared == pytest.approx(r_squared(ordinary, soft_values))


def test_stability_is_that_of_the_annotation_bootstrap(result: Evaluation) -> None:
    frame = table()
    drawn = annotation_bootstrap(frame["n_positive"], frame["n_votes"], scores().values, n_bootstrap=40, seed=0)
    soft, hard = drawn.stability("soft_auroc")
    rows = result.only.stability.set_index(["metric", "labels"])["mean_pairwise"]
    assert rows["AUROC", "soft"] == soft.mean_pairwise
    assert rows["AUROC", "hard"] == hard.mean_pairwise


def test_the_same_seed_gives_the_same_answer_with_any_number_of_threads() -> None:
    first, second = (plain(quick(labels(), scores(), seed=7, workers=w)) for w in (1, 2))
    assert first == second
    assert first != plain(quick(labels(), scores(), seed=8))


def test_the_order_of_the_score_rows_does_not_matter(result: Evaluation) -> None:
    turned = Scores(scores().item_ids[::-1], MODELS, scores().values[::-1])
    assert plain(quick(labels(), turned, k=(100, 500))) == plain(result)


def test_tables_are_read(result: Evaluation) -> None:
    found = quick(table(), scores().to_frame(), k=(100, 500))
    assert plain(found) == plain(result)
    with pytest.raises(InputError, match="the item 'i0' is duplicated in the soft labels"):
        quick(replace(labels(), item_ids=labels().item_ids[[0, *range(N - 1)]]), scores())


def test_lists_must_be_shorter_than_the_data() -> None:
    assert "precision_at_100" not in quick(labels(100), scores(100)).only.wide()
    assert "precision_at_100" in quick(labels(101), scores(101)).only.wide()


def test_fewer_metrics() -> None:
    found = quick(labels(), scores(), metrics=["auroc", "brier"])
    assert list(found.only.wide()) == ["auroc", "brier"]
    assert found.only.comparisons == ()
    for wrong in (["f1"], [], "auroc"):
        with pytest.raises(UsageError, match="metrics must be"):
            quick(labels(), scores(), metrics=wrong)


class TestLabels:
    released = ReleasedLabels(
        labels().item_ids, (labels().p >= 0.7).astype(np.int8), labels().p, labels().p / 2, threshold=0.7
    )

    def test_released_labels_and_p_calibrated(self) -> None:
        found = quick(labels(), scores(), labels=self.released, soft="p_calibrated")
        assert found.hard == "labels released at p >= 0.7000"
        assert value(found, "soft_auroc") == pytest.approx(soft_auroc(labels().p / 2, scores().of("south")))
        assert value(found, "auroc") == pytest.approx(roc_auc_score(labels().p >= 0.7, scores().of("south")))

    def test_a_series_is_matched_by_item_and_an_array_by_place(self) -> None:
        hard = pd.Series(self.released.label, index=labels().item_ids)
        by_item = quick(labels(), scores(), labels=hard[::-1])
        by_place = quick(labels(), scores(), labels=self.released.label)
        assert plain(by_item) == plain(by_place)

    def test_a_table_of_labels(self) -> None:
        frame = self.released.to_frame()[["item", "label"]]
        found = quick(labels(), scores(), labels=frame)
        assert found.only.base_rate == self.released.label.mean()
        with pytest.raises(InputError, match="needs the columns item and label"):
            quick(labels(), scores(), labels=frame.rename(columns={"label": "y"}))

    def test_the_column_label(self) -> None:
        found = quick(read_soft_labels(table().assign(label=lambda t: (t["p"] > 0.2).astype(int))), scores())
        assert found.hard == "column label of the soft labels"
        assert found.only.base_rate == (labels().p > 0.2).mean()

    @pytest.mark.parametrize("soft", ["mean_vote", "expected_vote"])
    def test_other_columns(self, soft: str) -> None:
        found = quick(labels(), scores(), soft=soft)
        assert value(found, "soft_ap") == pytest.approx(
            soft_average_precision(getattr(labels(), soft), scores().of("south"))
        )

    def test_what_is_refused(self) -> None:
        with pytest.raises(UsageError, match="soft must be one of p, p_calibrated"):
            quick(labels(), scores(), soft="b_mean")
        with pytest.raises(UsageError, match="needs the labels of a calibration"):
            quick(labels(), scores(), soft="p_calibrated")
        with pytest.raises(InputError, match="a hard label must be 0 or 1, got 2 at position 5"):
            quick(labels(), scores(), labels=[0] * 5 + [2] + [1] * (N - 6))
        with pytest.raises(InputError, match="labels must have 240 rows"):
            quick(labels(), scores(), labels=[0, 1])
        with pytest.raises(InputError, match="238 scored items have no hard label, the first is 'i2'"):
            quick(labels(), scores(), labels=pd.Series([0, 1], index=["i0", "i1"]))
        with pytest.raises(InputError, match="240 scored items have no soft label expected_vote"):
            quick(read_soft_labels(table()[["item", "p"]]), scores(), soft="expected_vote")


class TestBadScores:
    def change(self, **cells: float) -> Scores:
        values = scores().values.copy()
        for place, cell in cells.items():
            values[int(place[1:]), 1] = cell
        return Scores(scores().item_ids, MODELS, values)

    def test_infinite(self) -> None:
        with pytest.raises(InputError, match="model 'south' for item 'i3' is inf; a score must be a finite number"):
            quick(labels(), self.change(i3=np.inf))

    def test_missing(self) -> None:
        gap = self.change(i3=np.nan, i7=np.nan)
        with pytest.raises(InputError, match=r"2 of 240 items have no score of at least one model.*--missing drop"):
            quick(labels(), gap)
        found = quick(labels(), gap, missing="drop")
        assert (found.only.n_items, found.only.n_dropped) == (238, 2)
        assert "they were left out for all models" in texts(found)[0]
        kept = np.setdiff1d(np.arange(N), [3, 7])
        assert value(found, "soft_auroc", "north") == pytest.approx(
            soft_auroc(labels().p[kept], scores().of("north")[kept])
        )

    def test_all_missing(self) -> None:
        nothing = Scores(scores().item_ids, MODELS, np.full((N, 3), np.nan))
        with pytest.raises(InputError, match="no item is left"):
            quick(labels(), nothing, missing="drop")

    def test_unknown_items(self) -> None:
        more = Scores(
            pd.Index([*scores().item_ids, "zebra"], dtype="str"), MODELS, np.vstack([scores().values, [0, 0, 0]])
        )
        with pytest.raises(InputError, match="1 of 241 scored items have no soft label, the first is 'zebra'"):
            quick(labels(), more)
        assert quick(labels(), more, ignore_unknown=True).only.n_items == N
        with pytest.raises(InputError, match="no scored item has a soft label"):
            quick(labels(), Scores(pd.Index(["q"], dtype="str"), ("m",), np.ones((1, 1))), ignore_unknown=True)

    def test_duplicates(self) -> None:
        with pytest.raises(InputError, match="the model 'a' is duplicated in the scores"):
            quick(labels(), Scores(scores().item_ids, ("a", "b", "a"), scores().values))
        twice = scores().item_ids[[0, *range(N - 1)]]
        with pytest.raises(InputError, match="the item 'i0' is duplicated in the scores"):
            quick(labels(), Scores(twice, MODELS, scores().values))

    def test_one_item_and_no_model(self) -> None:
        with pytest.raises(InputError, match="at least two items with a score, got 1"):
            quick(labels(1), scores(1))
        with pytest.raises(InputError, match="no model"):
            quick(labels(), Scores(scores().item_ids, (), np.empty((N, 0))))

    def test_a_constant_model_is_said(self) -> None:
        flat = Scores(scores().item_ids, MODELS, np.column_stack([scores().values[:, :2], np.full(N, 0.4)]))
        found = quick(labels(), flat)
        assert value(found, "auroc", "east") == value(found, "soft_auroc", "east") == 0.5
        assert "the same score for every item, which ranks nothing (AUROC 0.5): east" in texts(found)

    def test_scores_that_are_no_probabilities(self) -> None:
        found = quick(labels(), self.change(i0=1.5))
        assert "scores outside [0, 1], so no Brier score, log loss or ECE: south" in texts(found)
        wide = found.only.wide()
        assert wide.loc["south", ["brier", "balanced_brier", "log_loss", "ece"]].isna().all()
        assert wide.loc[["north", "east"]].notna().all(axis=None)
        assert np.isnan(found.only.beats["brier"][1]).all()
        assert found.only.table.query("metric == 'brier'")["rank"].tolist()[::2] == [1, 2]
        everything = Scores(scores().item_ids, MODELS, scores().values * 9)
        assert "brier" not in quick(labels(), everything).only.wide()

    def test_a_ranking_needs_no_probabilities(self) -> None:
        shifted = Scores(scores().item_ids, MODELS, 7 * scores().values - 3)
        assert value(quick(labels(), shifted), "soft_ap") == pytest.approx(
            value(quick(labels(), scores()), "soft_ap"), abs=1e-12
        )

    def test_an_impossible_prediction_is_infinite_and_said(self) -> None:
        found = quick(labels(), self.change(i0=0.0))
        assert value(found, "log_loss") == np.inf
        assert any(text.startswith("infinite log loss") and text.endswith(": south") for text in texts(found))
        json.loads(plain(found))

    def test_one_class_is_said(self) -> None:
        found = quick(labels(), scores(), labels=np.zeros(N))
        assert "no item has a positive hard label: ordinary metrics that need one are undefined" in texts(found)
        assert np.isnan(value(found, "auroc"))
        assert np.isfinite(value(found, "soft_auroc"))
        assert found.only.comparisons[0].best_ordinary.models == ()
        assert found.only.comparisons[0].best_soft.models == ("north",)

    def test_one_model(self) -> None:
        found = quick(labels(), Scores(scores().item_ids, ("only",), scores().values[:, :1]))
        assert found.only.stability.empty
        assert "ranking stability needs at least two models" in texts(found)
        assert np.isnan(found.only.comparisons[0].r_squared)

    def test_a_line_through_two_models_says_nothing(self) -> None:
        found = quick(labels(), Scores(scores().item_ids, scores().models[:2], scores().values[:, :2]))
        assert np.isnan(found.only.comparisons[0].r_squared)
        assert r_squared_words(found.only.comparisons[0]) == ""


class TestVotes:
    def test_without_counts_the_stability_is_left_out(self) -> None:
        found = quick(read_soft_labels(table()[["item", "p"]]), scores())
        assert found.only.stability.empty
        assert any("needs the votes of every item" in text for text in texts(found))

    def test_averaged_votes(self) -> None:
        found = quick(read_soft_labels(table().assign(n_positive=lambda t: t["n_positive"] / 2)), scores())
        assert any("needs whole votes" in text for text in texts(found))

    def test_not_asked_for(self) -> None:
        assert quick(labels(), scores(), n_vote_bootstrap=0).only.stability.empty


class TestTasks:
    tasks = pd.Series(["even" if i % 2 == 0 else "odd" for i in range(N)], index=[f"i{i}" for i in range(N)])

    @pytest.mark.slow
    def test_each_task_is_what_it_is_alone(self) -> None:
        found = quick(labels(), scores(), tasks=self.tasks, seed=5)
        assert [task.task for task in found.tasks] == ["even", "odd"]
        for number, task in enumerate(found.tasks):
            part = np.arange(number, N, 2)
            frame = table().iloc[part]
            alone = Scores(scores().item_ids[part], MODELS, scores().values[part])
            expected = quick(read_soft_labels(frame), alone, seed=5 + number).only
            pd.testing.assert_frame_equal(task.table, expected.table)
            pd.testing.assert_frame_equal(task.stability, expected.stability)

    def test_the_average(self) -> None:
        found = quick(labels(), scores(), tasks=self.tasks)
        average = found.average.table.set_index(["metric", "model"])
        means = sum(task.table.set_index(["metric", "model"])["value"] for task in found.tasks) / 2
        pd.testing.assert_series_equal(average["value"], means)
        assert (average["low"] <= average["value"]).all()
        assert (average["value"] <= average["high"]).all()
        stability = [task.stability["mean_pairwise"] for task in found.tasks]
        np.testing.assert_allclose(found.average.stability["mean_pairwise"], (stability[0] + stability[1]) / 2)
        frame = found.to_frame()
        assert frame["task"].unique().tolist() == ["even", "odd", "average"]
        assert len(frame) == 3 * len(found.only.table)

    def test_tasks_without_scores_are_left_out_and_said(self) -> None:
        part = np.arange(0, N, 2)
        found = quick(
            labels(),
            Scores(scores().item_ids[part], MODELS, scores().values[part]),
            tasks=self.tasks,
            missing="drop",
        )
        assert [task.task for task in found.tasks] == ["even"]
        assert found.average is None
        assert "1 of 2 tasks have no scored item and were left out: odd" in texts(found)

    def test_what_is_refused(self) -> None:
        with pytest.raises(InputError, match="239 scored items have no task, the first is 'i1'"):
            quick(labels(), scores(), tasks={"i0": "even"})
        with pytest.raises(InputError, match="at least two items with a score, got 1 in task 'lonely'"):
            quick(labels(), scores(), tasks={**self.tasks, "i0": "lonely"})
        with pytest.raises(InputError, match="item 'i0' has two tasks"):
            quick(labels(), scores(), tasks=pd.concat([self.tasks, self.tasks[:1]]))

    def test_reading_them(self) -> None:
        frame = pd.DataFrame({"image": ["x", "y"], "finding": ["a", "b"], "task": ["c", "d"]})
        assert read_tasks(frame, item="image", task="finding").to_dict() == {"x": "a", "y": "b"}
        assert read_tasks(frame).to_dict() == {"x": "c", "y": "d"}
        with pytest.raises(InputError, match="row 2, column 'task': the item 'x' has two values of task"):
            read_tasks(pd.DataFrame({"item": ["x", "x"], "task": ["a", "b"]}))
        with pytest.raises(InputError, match="has no column 'organ'"):
            read_tasks(frame, item="image", task="organ")


def test_ranks_share_places_and_skip_what_is_undefined() -> None:
    assert ranks(np.array([0.5, 0.9, 0.5 + 1e-15]), False).tolist() == [2.5, 1, 2.5]
    found = ranks(np.array([0.5, np.nan, 0.1, np.inf]), True)
    assert found[[0, 2, 3]].tolist() == [2, 1, 3]
    assert np.isnan(found[1])


def test_the_metrics_are_named() -> None:
    assert "soft_auroc" in METRICS


def test_a_few_items_are_enumerated() -> None:
    found = quick(labels(4), scores(4), n_bootstrap=100, labels=[1, 0, 1, 0])
    assert set(found.only.table["interval"]) == {"exact"}


@pytest.mark.slow
def test_cardiomegaly_changes_its_winner(real_data: Path) -> None:
    from softgold import Mean, read_votes

    folder = real_data / "chexpert_test"
    soft = Mean().aggregate(read_votes(folder / "votes_all8.csv"))
    found = evaluate(
        soft,
        read_scores(folder / "scores.csv"),
        soft="mean_vote",
        labels=(soft.mean_vote > 0.5).astype(int),
        tasks=read_tasks(folder / "items.csv"),
        missing="drop",
        n_bootstrap=100,
    )
    assert len(found.tasks) == 5
    heart = next(task for task in found.tasks if task.task == "Cardiomegaly")
    auroc = heart.comparisons[0]
    assert (auroc.best_ordinary.models, auroc.best_soft.models) == (("sensexdr",), ("hieupham",))
    # Figure 3 of the paper: over the tasks, soft metrics rank more consistently.
    stability = found.average.stability.set_index(["metric", "labels"])["mean_pairwise"]
    assert stability["AUROC", "soft"] > stability["AUROC", "hard"]
    assert stability["AP", "soft"] > stability["AP", "hard"]


class TestGroups:
    """Items of one patient are not independent: bootstraps redraw patients."""

    groups = pd.Series([f"patient{i // 4}" for i in range(N)], index=[f"i{i}" for i in range(N)], name="patient")

    def test_the_resamples_are_those_of_the_groups(self) -> None:
        found = quick(labels(), scores(), groups=self.groups)
        codes = np.arange(N) // 4
        direct = bootstrap_metrics(["soft_auroc"], labels().p, scores().values, groups=codes, n_bootstrap=60, seed=0)
        rows = found.only.table.set_index("metric").loc["soft_auroc"]
        np.testing.assert_allclose(rows["low"], direct["soft_auroc"].low, rtol=1e-12)
        assert (found.settings.group_name, found.settings.n_groups) == ("patient", 60)
        assert found.settings.redrawn == "the 60 groups (patient)"
        assert quick(labels(), scores()).settings.redrawn == "the items"

    def test_tasks_redraw_the_same_groups(self) -> None:
        """With the same items in two tasks the average is the task itself, interval and all."""
        twice = pd.concat([table().assign(item=table()["item"] + suffix) for suffix in ("|a", "|b")])
        frame = scores().to_frame()
        both = pd.concat([frame.assign(item=frame["item"] + suffix) for suffix in ("|a", "|b")])
        tasks = {item: item[-1] for item in twice["item"]}
        groups = {item: item[:-2] for item in twice["item"]}
        joint = quick(twice, both, tasks=tasks, groups=groups)
        columns = ["value", "low", "high"]
        rankings = joint.only.table["interval"] == "bootstrap"
        np.testing.assert_allclose(
            joint.average.table.loc[rankings, columns], joint.only.table.loc[rankings, columns], rtol=1e-12
        )
        apart = quick(twice, both, tasks=tasks)
        width = [
            float((part.average.table["high"] - part.average.table["low"])[rankings].mean()) for part in (joint, apart)
        ]
        assert width[0] > 1.2 * width[1]

    def test_what_is_refused(self) -> None:
        with pytest.raises(InputError, match="239 scored items have no group, the first is 'i1'"):
            quick(labels(), scores(), groups={"i0": "x"})
        with pytest.raises(InputError, match="belong to one group, 'x': nothing to redraw"):
            quick(labels(), scores(), groups=dict.fromkeys(labels().item_ids, "x"))
        with pytest.raises(InputError, match="item 'i0' has two groups"):
            quick(labels(), scores(), groups=pd.concat([self.groups, self.groups[:1]]))

    def test_reading_them(self) -> None:
        long = pd.DataFrame({"item": ["x", "x", "y"], "model": ["a", "b", "a"], "patient": [1, 1, 2]})
        found = read_groups(long, "patient")
        assert (found.to_dict(), found.name) == ({"x": "1", "y": "2"}, "patient")
        with pytest.raises(InputError, match=r"row 2, column 'patient': the item 'x' has two values of patient"):
            read_groups(long.assign(patient=[1, 3, 2]), "patient")


class TestCeilings:
    def test_worked_by_hand(self) -> None:
        """p = (1, .5, 0): n+ = n- = 1.5, d = .25, S = 2, so the ceiling of soft AUROC is 2.125 / 2.25."""
        soft = read_soft_labels(pd.DataFrame({"item": list("abc"), "p": [1, 0.5, 0]}))
        frame = pd.DataFrame({"item": list("abc"), "best": [0.9, 0.5, 0.1], "flat": 0.5, "worst": [0.1, 0.5, 0.9]})
        rows = quick(soft, read_scores(frame)).only.table.set_index(["metric", "model"])
        auroc = rows.loc["soft_auroc"]
        assert auroc["ceiling"].tolist() == pytest.approx([2.125 / 2.25] * 3)
        assert auroc["share"].to_dict() == pytest.approx({"best": 1, "flat": 0, "worst": -1})
        # AP of the labels themselves: 1 * 2/3 + 0.75 * 1/3; chance is the mean label.
        assert rows.loc[("soft_ap", "best"), "ceiling"] == pytest.approx(2 / 3 + 0.25)
        assert rows.loc[("soft_ap", "flat"), ["chance", "share"]].tolist() == pytest.approx([0.5, 0])
        # Brier: the noise of the labels, .25 / 3; the constant 0.5 has 0.25.
        assert rows.loc[("brier", "flat"), ["chance", "ceiling", "share"]].tolist() == pytest.approx(
            [0.25, 0.25 / 3, 0]
        )
        assert rows.loc[("log_loss", "flat"), ["chance", "ceiling"]].tolist() == pytest.approx(
            [np.log(2), np.log(2) / 3]
        )
        assert rows.loc[["auroc", "balanced_brier"], ["chance", "ceiling", "share"]].isna().all(axis=None)

    def test_the_labels_themselves_are_at_the_ceiling(self) -> None:
        own = Scores(labels().item_ids, ("self", "other"), np.column_stack([labels().p, scores().values[:, 0]]))
        found = quick(labels(), own).only.table.set_index(["model", "metric"])
        shares = found.loc["self"].loc[["soft_auroc", "soft_ap", "soft_precision_at_100", "brier", "log_loss"], "share"]
        np.testing.assert_allclose(shares, 1, rtol=1e-12)
        assert (found.loc["other"]["share"].dropna() < 1).all()

    def test_the_average_has_the_mean_ceiling(self) -> None:
        found = quick(labels(), scores(), tasks=TestTasks.tasks)
        means = sum(task.table["ceiling"] for task in found.tasks) / 2
        pd.testing.assert_series_equal(found.average.table["ceiling"], means)

    def test_clear_negatives_that_carry_positive_mass_are_said(self) -> None:
        """90 items with 0 of 5 votes and p = 0.1 have a mass of 9, as much as 10 items with p = 0.9."""
        frame = pd.DataFrame({"item": [f"i{i}" for i in range(100)], "p": [0.1] * 90 + [0.9] * 10})
        votes = frame.assign(n_votes=5, n_positive=[0] * 90 + [5] * 10)
        noise = np.random.default_rng(0).normal(0, 0.01, 100)
        values = Scores(pd.Index(frame["item"], dtype="str"), ("good",), (frame["p"] + noise).to_numpy()[:, None])
        mass = [notice for notice in quick(votes, values).notices if notice.kind == "positive mass"]
        assert [notice.text[:90] for notice in mass] == [
            "90 of 100 items are unanimously negative with 5 votes or more, yet their soft labels make u"[:90]
        ]
        assert "50% of the positive mass" in mass[0].text
        few = quick(votes.assign(n_votes=4, n_positive=[0] * 90 + [4] * 10), values)
        assert not [notice for notice in few.notices if notice.kind == "positive mass"]


class TestLeads:
    def test_a_clear_leader_is_separated(self, result: Evaluation) -> None:
        lead = result.only.comparisons[0].best_soft
        assert (lead.models, lead.rivals, lead.closest) == (("north",), (), "south")
        assert lead.probability == result.only.beats["soft_auroc"][0, 1]
        assert lead.is_separated
        assert lead_words(lead, "soft AUROC").startswith("north is first by soft AUROC (ahead of every other model in")

    def test_models_that_are_alike_cannot_be_told_apart(self) -> None:
        rng = np.random.default_rng(1)
        values = labels().p[:, None] + rng.normal(0, 0.4, (N, 3))
        found = quick(labels(), Scores(labels().item_ids, MODELS, values)).only.comparisons[0].best_soft
        assert not found.is_separated
        assert found.rivals
        assert found.probability < 0.975
        assert "cannot be told apart by AUROC" in lead_words(found, "AUROC")

    def test_two_equal_models_are_a_tie_and_no_swap(self) -> None:
        values = np.column_stack([scores().values[:, 0], scores().values[:, 0] ** 3, scores().values[:, 1]])
        found = quick(labels(), Scores(labels().item_ids, MODELS, values)).only.comparisons[0]
        assert found.best_soft.models == ("north", "south")
        assert not found.best_soft.is_separated
        assert found.best_soft.closest == "east"
        assert lead_words(found.best_soft, "soft AUROC") == "north and south share the first place by soft AUROC"
        assert found.swaps == found.ties == ()

    def test_a_tie_by_one_metric_is_no_swap(self) -> None:
        """By hard labels x and y are equal (one wrong pair of six each); by soft labels x is better."""
        soft = read_soft_labels(pd.DataFrame({"item": list("abcde"), "p": [0.9, 0.6, 0.4, 0.2, 0.1]}))
        frame = pd.DataFrame({"item": list("abcde"), "x": [5, 3, 4, 2, 1], "y": [4, 3, 1, 2, 3.5]})
        found = quick(soft, read_scores(frame)).only.comparisons[0]
        hard = [1, 1, 0, 0, 0]
        assert soft_auroc(hard, frame["x"]) == soft_auroc(hard, frame["y"])
        assert (found.swaps, found.ties) == ((), (("x", "y"),))
        assert swap_words(found, "AUROC", "soft AUROC") == (
            "no two models change places; 1 pair is tied by one of the metrics only"
        )

    def test_a_swap_that_the_resamples_separate(self) -> None:
        """x ranks by the hard labels and the reverse of the soft ones inside each class, y the other way round."""
        rng = np.random.default_rng(2)
        p = rng.random(2000)
        hard = (p > 0.5).astype(float)
        values = np.column_stack([hard + 0.9 * np.abs(1 - hard - p), p + rng.normal(0, 0.05, 2000)])
        frame = pd.DataFrame({"item": [f"i{i}" for i in range(2000)], "p": p})
        found = quick(frame, Scores(pd.Index(frame["item"], dtype="str"), ("x", "y"), values)).only.comparisons[0]
        assert [(swap.first, swap.second, swap.is_separated) for swap in found.swaps] == [("x", "y", True)]
        assert swap_words(found, "AUROC", "soft AUROC") == (
            "1 pair changes places by value, x is ahead of y by AUROC (in 100.0 % of the resamples) and behind by "
            "soft AUROC (in 100.0 %)"
        )


def test_what_concerns_all_tasks_is_said_once() -> None:
    tasks = pd.Series([f"task{i % 4}" for i in range(N)], index=labels().item_ids)
    shifted = Scores(scores().item_ids, MODELS, 5 * scores().values)
    found = quick(read_soft_labels(table()[["item", "p"]]), shifted, tasks=tasks)
    assert len(found.notices) == len(set(texts(found))) == 2
    assert all(len(notice.tasks) == 4 for notice in found.notices)
    assert notice_words(found.notices[0], found) == found.notices[0].text
    assert notice_words(replace(found.notices[0], tasks=("task1",)), found).endswith("(in task1)")


def test_progress_ends_at_one() -> None:
    for options in ({}, {"n_vote_bootstrap": 0}, {"tasks": TestTasks.tasks, "workers": 2}):
        told: list[float] = []
        quick(labels(), scores(), on_progress=told.append, **options)
        assert told == sorted(told)
        assert told[-1] == 1


def test_it_is_stored_and_read_back_as_the_same_value(tmp_path: Path) -> None:
    for number, options in enumerate(({}, {"tasks": TestTasks.tasks, "groups": TestGroups.groups})):
        found = quick(labels(), scores(), **options)
        folder = tmp_path / str(number)
        folder.mkdir()
        write_result(found, folder)
        again = read_result(folder, RESULTS["evaluation"])
        assert plain(again) == plain(found)
        assert again.only.comparisons == found.only.comparisons
        assert again.settings == found.settings
        pd.testing.assert_frame_equal(again.only.table, found.only.table)
