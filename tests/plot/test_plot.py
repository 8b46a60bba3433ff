"""The figures: what is drawn is what the results say, on the Axes that were given."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.evaluation import Evaluation, evaluate_classes
from softgold.experts import Calibration
from softgold.metrics import calibration_curve
from softgold.models.base import Fit
from softgold.planning import Forecast
from softgold.simulation import Simulation
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import ErrorbarContainer


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def study() -> Simulation:
    return softgold.simulate(
        n_items=120,
        n_annotators=20,
        votes_per_item=6,
        adversarial_share=0.1,
        model_aurocs=(0.9, 0.85, 0.7),
        model_ambiguity=(0.1, 0.9, 0.5),
        n_expert_items=60,
        seed=4,
    )


@pytest.fixture(scope="module")
def fit(study: Simulation) -> Fit:
    return softgold.fit(study.votes, engine="coordinate")


@pytest.fixture(scope="module")
def labels(fit: Fit) -> SoftLabels:
    return fit.posterior.soft_labels()


@pytest.fixture(scope="module")
def calibration(labels: SoftLabels, study: Simulation) -> Calibration:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", softgold.errors.DataWarning)
        return softgold.calibrate(labels, study.experts, n_bootstrap=50)


@pytest.fixture(scope="module")
def evaluation(labels: SoftLabels, study: Simulation) -> Evaluation:
    return softgold.evaluate(labels, study.scores, n_bootstrap=40, n_vote_bootstrap=20)


@pytest.fixture(scope="module")
def outlook(fit: Fit) -> Forecast:
    return softgold.forecast(fit, target_error=0.15, n_campaigns=20)


@pytest.fixture(scope="module")
def run(fit: Fit, calibration: Calibration, evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("plot") / "run"
    fit.save(folder)
    stored = softgold.open_run(folder)
    stored.add(calibration)
    stored.add(evaluation)
    return softgold.open_run(folder)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(3)
    rows = [(f"i{item}", f"a{who}", rng.choice(["clear", "mild", "severe"])) for item in range(20) for who in range(4)]
    votes = softgold.read_study(pd.DataFrame(rows, columns=["item", "annotator", "vote"]))
    folder = tmp_path_factory.mktemp("plot") / "grades"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
        fits = softgold.fit_tasks(votes.votes, engine="coordinate", n_jobs=1)
    softgold.save_study(fits, folder, kind="classes")
    return softgold.open_study(folder)


def drawn_lines(ax: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Return the points of each line that has a label."""
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in ax.lines
        if not str(line.get_label()).startswith("_")
    }


def dots(ax: Axes) -> dict[str, list[list[float]]]:
    """Return the places of each group of dots that has a label."""
    found = [entry for entry in ax.collections if isinstance(entry, PathCollection)]
    return {str(entry.get_label()): np.asarray(entry.get_offsets()).tolist() for entry in found}


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


# ---------------------------------------------------------------- soft labels


def test_bars_count_the_items(labels: SoftLabels) -> None:
    ax = softgold.plot.soft_labels(labels, bins=10)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == np.histogram(labels.p, bins=10, range=(0, 1))[0].tolist()
    assert ax.get_legend() is None
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("soft label p", "items", "Soft labels")


def test_a_threshold_is_drawn_and_its_positives_are_counted(labels: SoftLabels) -> None:
    ax = softgold.plot.soft_labels(labels, threshold=0.3)
    assert ax.lines[0].get_xdata() == [0.3, 0.3]
    assert legend(ax) == [f"threshold 0.3: {(labels.p >= 0.3).sum()} of 120 positive"]


def test_a_calibration_and_a_run_bring_their_threshold(calibration: Calibration, run: Any, fit: Fit) -> None:
    for source in (calibration, run):
        ax = softgold.plot.soft_labels(source)
        assert ax.lines[0].get_xdata() == [calibration.threshold, calibration.threshold]
        assert sum(bar.get_height() for bar in ax.patches) == 120
    assert len(softgold.plot.soft_labels(fit).lines) == 0


def test_no_item_is_positive_above_a_threshold_beyond_one(calibration: Calibration) -> None:
    never = replace(calibration, threshold=math.nextafter(1.0, 2.0))
    ax = softgold.plot.soft_labels(never)
    assert ax.lines[0].get_xdata() == [1.0, 1.0]
    assert legend(ax) == ["threshold 1: 0 of 120 positive"]


@pytest.mark.parametrize(("option", "value"), [("threshold", 1.5), ("threshold", math.nan), ("bins", 0)])
def test_options_are_checked(labels: SoftLabels, option: str, value: float) -> None:
    with pytest.raises(softgold.errors.UsageError, match=option):
        softgold.plot.soft_labels(labels, **{option: value})


# ---------------------------------------------------------------- annotators


def test_every_annotator_is_a_dot_with_both_intervals(fit: Fit) -> None:
    table = fit.posterior.annotators()
    ax = softgold.plot.annotators(fit)
    opposite = table["p_adversarial"] > 0.95
    expected = table[["specificity", "sensitivity"]]
    groups = dots(ax)
    assert groups[f"{(~opposite).sum()} annotators"] == expected[~opposite].to_numpy().tolist()
    assert groups[f"{opposite.sum()} voting the opposite"] == expected[opposite].to_numpy().tolist()
    assert texts(ax) == table["annotator"][opposite].tolist()
    assert drawn_lines(ax)["guessing"] == ([0, 1], [1, 0])
    bars = [entry for entry in ax.containers if isinstance(entry, ErrorbarContainer)]
    _, _, (across, upwards) = bars[0]
    first = table[~opposite].iloc[0]
    assert across.get_segments()[0][:, 0] == pytest.approx(first[["specificity_lo", "specificity_hi"]].tolist())
    assert upwards.get_segments()[0][:, 1] == pytest.approx(first[["sensitivity_lo", "sensitivity_hi"]].tolist())


def test_one_annotator(fit: Fit) -> None:
    table = fit.posterior.annotators()
    one = table[table["p_adversarial"] < 0.5].head(1)
    ax = softgold.plot.annotators(one)
    assert list(dots(ax)) == ["1 annotator"]
    assert legend(ax) == ["guessing", "1 annotator"]


def test_many_opposite_annotators_are_not_named(fit: Fit) -> None:
    table = pd.concat([fit.posterior.annotators()] * 2).assign(p_adversarial=0.99)
    ax = softgold.plot.annotators(table)
    assert texts(ax) == []
    assert list(dots(ax)) == ["40 voting the opposite"]


def test_a_run_and_a_table_without_intervals(run: Any, fit: Fit) -> None:
    plain = fit.posterior.annotators()[["annotator", "sensitivity", "specificity"]]
    assert len(dots(softgold.plot.annotators(plain))["20 annotators"]) == 20
    assert sum(map(len, dots(softgold.plot.annotators(run)).values())) == 20


def test_a_baseline_has_no_sensitivity(study: Simulation) -> None:
    with pytest.raises(softgold.errors.UsageError, match=r"have no sensitivity.*fit the model 'two-class'"):
        softgold.plot.annotators(softgold.fit(study.votes, model="majority"))


# ---------------------------------------------------------------- experts


def test_the_map_its_band_and_the_bins(calibration: Calibration) -> None:
    ax = softgold.plot.expert_map(calibration)
    lines = drawn_lines(ax)
    at = np.linspace(0, 1, 201)
    assert lines["map to p_calibrated"][1] == pytest.approx(calibration.soft_map.apply(at))
    band = ax.collections[0].get_paths()[0].vertices
    low, high = calibration.soft_map.band(at)
    assert {tuple(point) for point in band.round(9)} == {
        tuple(point) for ends in (low, high) for point in np.column_stack([at, ends]).round(9)
    }
    bins = calibration.bins[calibration.bins["labelled"] > 0]
    [bars] = [entry for entry in ax.containers if isinstance(entry, ErrorbarContainer)]
    data, _, (upwards,) = bars
    assert data.get_xydata().tolist() == bins[["p_mean", "rate"]].to_numpy().tolist()
    ends = [segment[:, 1].tolist() for segment in upwards.get_segments()]
    assert np.array(ends) == pytest.approx(bins[["rate_lo", "rate_hi"]].to_numpy(), abs=1e-12)
    assert lines[f"threshold {calibration.threshold:.3f}"][0] == [calibration.threshold] * 2


def test_without_expert_labels_the_map_changes_nothing(labels: SoftLabels) -> None:
    nobody = pd.DataFrame({"item": labels.item_ids[:3], "label": ["unsure"] * 3})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", softgold.errors.DataWarning)
        found = softgold.calibrate(labels, nobody, n_bootstrap=20)
    ax = softgold.plot.expert_map(found)
    across, upwards = drawn_lines(ax)["map to p_calibrated"]
    assert upwards == pytest.approx(across, abs=1e-6)
    assert not ax.containers


def test_a_run_without_a_calibration_says_what_makes_one(fit: Fit, run: Any, tmp_path: Path) -> None:
    fit.save(tmp_path / "run")
    with pytest.raises(softgold.errors.StorageError, match="softgold calibrate"):
        softgold.plot.expert_map(softgold.open_run(tmp_path / "run"))
    assert "map to p_calibrated" in drawn_lines(softgold.plot.expert_map(run))


# ---------------------------------------------------------------- models


def ranks_in(evaluation: Evaluation, metric: str) -> dict[str, float]:
    own = evaluation.leading.table.query("metric == @metric")
    return dict(zip(own["model"], own["rank"], strict=True))


@pytest.mark.parametrize("metric", ["auroc", "ap"])
def test_a_line_leads_from_the_ordinary_to_the_soft_rank(evaluation: Evaluation, run: Any, metric: Any) -> None:
    ordinary, soft = ranks_in(evaluation, metric), ranks_in(evaluation, f"soft_{metric}")
    for source in (evaluation, evaluation.only, run):
        ax = softgold.plot.ranks(source, metric=metric)
        assert drawn_lines(ax) == {name: ([0, 1], [ordinary[name], soft[name]]) for name in ordinary}
        assert [text.get_text() for text in ax.get_xticklabels()] == [
            f"by {metric.upper()}",
            f"by soft {metric.upper()}",
        ]
        assert ax.get_ylim() == (3.5, 0.5)  # the first is on top


def test_models_that_share_a_place_stand_below_each_other(labels: SoftLabels, study: Simulation) -> None:
    one = study.scores.values[:, 0]
    twins = Scores(study.scores.item_ids, ("x", "y"), np.column_stack([one, one]))
    ax = softgold.plot.ranks(softgold.evaluate(labels, twins, n_bootstrap=20, n_vote_bootstrap=0))
    assert drawn_lines(ax) == {"x": ([0, 1], [1, 1]), "y": ([0, 1], [2, 2])}
    assert texts(ax) == ["x  1=", "1=  x", "y  1=", "1=  y"]


def test_one_model(labels: SoftLabels, study: Simulation) -> None:
    alone = Scores(study.scores.item_ids, ("net",), study.scores.values[:, :1])
    ax = softgold.plot.ranks(softgold.evaluate(labels, alone, n_bootstrap=20, n_vote_bootstrap=0))
    assert drawn_lines(ax) == {"net": ([0, 1], [1, 1])}


def test_tasks_are_chosen_by_name(labels: SoftLabels, study: Simulation) -> None:
    tasks = {item: "even" if at % 2 else "odd" for at, item in enumerate(labels.item_ids)}
    found = softgold.evaluate(labels, study.scores, tasks=tasks, n_bootstrap=20, n_vote_bootstrap=0)
    for task, part in (("odd", found.tasks[0]), ("even", found.tasks[1]), (None, found.average)):
        own = part.table.query("metric == 'soft_auroc'")
        expected = dict(zip(own["model"], own["rank"], strict=True))
        drawn = drawn_lines(softgold.plot.ranks(found, task=task))
        assert {name: points[1][1] for name, points in drawn.items()} == expected
    with pytest.raises(softgold.errors.UsageError, match=r"no task 'both'; it has 'odd', 'even'"):
        softgold.plot.ranks(found, task="both")


def test_without_values_there_is_nothing_to_rank(evaluation: Evaluation) -> None:
    empty = replace(evaluation.only, table=evaluation.only.table.assign(rank=math.nan))
    with pytest.raises(softgold.errors.UsageError, match="no model has both ap and soft_ap"):
        softgold.plot.ranks(empty, metric="ap")


@pytest.mark.parametrize("name", ["_net", "a$b$", "x" * 200, "two\nlines"])
def test_names_are_shown_as_they_are(labels: SoftLabels, study: Simulation, name: str) -> None:
    alone = Scores(study.scores.item_ids, (name,), study.scores.values[:, :1])
    ax = softgold.plot.ranks(softgold.evaluate(labels, alone, n_bootstrap=20, n_vote_bootstrap=0))
    ax.figure.canvas.draw()
    shown = ax.texts[0].get_text()
    assert shown.strip().startswith(name.split("\n", maxsplit=1)[0][:20].replace("$", r"\$"))
    assert len(shown) < 40
    assert len(legend(softgold.plot.reliability(labels, alone))) == 2


def test_reliability_is_the_calibration_curve(labels: SoftLabels, study: Simulation, fit: Fit) -> None:
    ax = softgold.plot.reliability(fit, study.scores, n_bins=5)
    lines = drawn_lines(ax)
    assert lines.pop("right on average") == ([0, 1], [0, 1])
    assert list(lines) == list(study.scores.models)
    for model, (across, upwards) in lines.items():
        curve = calibration_curve(labels.p, study.scores.of(model), n_bins=5)
        assert across == pytest.approx(curve.predicted.tolist())
        assert upwards == pytest.approx(curve.observed.tolist())


def test_models_are_chosen_and_others_left_out(labels: SoftLabels, study: Simulation) -> None:
    first, second, third = study.scores.models
    ax = softgold.plot.reliability(labels, study.scores, models=[third, first])
    assert list(drawn_lines(ax))[1:] == [third, first]
    logits = Scores(study.scores.item_ids, ("net", "logit"), study.scores.values[:, :2] * [1, -5])
    assert list(drawn_lines(softgold.plot.reliability(labels, logits)))[1:] == ["net"]
    with pytest.raises(softgold.errors.InputError, match=r"probabilities in \[0, 1\]"):
        softgold.plot.reliability(labels, logits, models=["logit"])
    with pytest.raises(softgold.errors.UsageError, match="no model 'other'"):
        softgold.plot.reliability(labels, study.scores, models=["other"])
    with pytest.raises(softgold.errors.UsageError, match="at least one model"):
        softgold.plot.reliability(labels, study.scores, models=[])
    assert second not in drawn_lines(ax)


def test_items_without_a_score_are_left_out(labels: SoftLabels, study: Simulation) -> None:
    values = study.scores.values.copy()
    values[:30, 0] = math.nan
    gaps = Scores(study.scores.item_ids, study.scores.models, values)
    first = study.scores.models[0]
    across, _ = drawn_lines(softgold.plot.reliability(labels, gaps, models=[first]))[first]
    kept = calibration_curve(labels.p[30:], values[30:, 0], n_bins=10)
    assert across == pytest.approx(kept.predicted.tolist())


# ---------------------------------------------------------------- forecast


def test_both_curves_what_is_left_and_the_target(outlook: Forecast) -> None:
    ax = softgold.plot.forecast(outlook)
    lines = drawn_lines(ax)
    for name, curve in (
        ("where they are worth most", outlook.adaptive),
        ("equally many for every item", outlook.uniform),
    ):
        shown = curve.votes <= 10 * outlook.n_items
        assert lines[name] == (curve.votes[shown].tolist(), curve.error[shown].tolist())
    assert lines["left after any number of votes"][1] == [outlook.error_left] * 2
    assert len(ax.collections) == 2
    assert outlook.needed is not None
    [target] = [points for name, points in lines.items() if name.startswith("15 % wrong after about")]
    assert target == ([outlook.needed.votes], [0.15])


def test_a_target_out_of_reach_is_not_marked(outlook: Forecast) -> None:
    assert outlook.needed is not None
    for needed in (None, replace(outlook.needed, votes=math.inf)):
        assert len(drawn_lines(softgold.plot.forecast(replace(outlook, needed=needed)))) == 3


# ---------------------------------------------------------------- all of them


Draw = Callable[..., Axes]


@pytest.fixture(params=["soft_labels", "annotators", "expert_map", "reliability", "ranks", "forecast"])
def draw(request: pytest.FixtureRequest) -> Draw:
    """A figure with its result in place."""
    values = {
        "soft_labels": ("labels",),
        "annotators": ("fit",),
        "expert_map": ("calibration",),
        "reliability": ("labels", "study"),
        "ranks": ("evaluation",),
        "forecast": ("outlook",),
    }[request.param]
    results = [request.getfixturevalue(name) for name in values]
    given = [value.scores if isinstance(value, Simulation) else value for value in results]
    function = getattr(softgold.plot, request.param)
    return lambda **options: function(*given, **options)


def test_the_axes_given_are_drawn_on_and_returned(draw: Draw) -> None:
    figure, axes = plt.subplots(1, 2)
    assert draw(ax=axes[1]) is axes[1]
    assert axes[1].has_data()
    assert not axes[0].has_data()
    assert plt.get_fignums() == [figure.number]


def test_without_axes_there_is_a_new_figure_with_words(draw: Draw) -> None:
    ax = draw()
    assert plt.get_fignums() == [ax.figure.number]
    assert ax.get_title()
    ax.figure.canvas.draw()  # nothing about it warns


@pytest.mark.parametrize("name", softgold.plot.__all__)
def test_another_thing_is_refused_with_a_sentence(name: str, study: Simulation) -> None:
    more = (study.scores,) if name == "reliability" else ()
    with pytest.raises(softgold.errors.UsageError, match=r"^the figure is drawn from .*, got VoteTable$"):
        getattr(softgold.plot, name)(study.votes, *more)


def test_classes_are_drawn_one_at_a_time(classes: Any) -> None:
    for name in ("soft_labels", "annotators", "expert_map"):
        with pytest.raises(softgold.errors.UsageError, match=r"has 3 classes: draw one, study\.tasks\['clear'\]"):
            getattr(softgold.plot, name)(classes)
    with pytest.raises(softgold.errors.UsageError, match="have 3 classes: draw those of one class"):
        softgold.plot.soft_labels(classes.class_labels)
    assert sum(bar.get_height() for bar in softgold.plot.soft_labels(classes.tasks["mild"]).patches) == 20


def test_an_evaluation_of_classes_is_drawn_by_class(classes: Any) -> None:
    frame = classes.class_labels.to_frame()
    found = evaluate_classes(frame, {"net": frame}, n_bootstrap=20)
    with pytest.raises(softgold.errors.UsageError, match=r"evaluation of 3 classes: .* task='clear'"):
        softgold.plot.ranks(found)
    assert list(drawn_lines(softgold.plot.ranks(found.per_class, task="mild"))) == ["net"]


def test_without_matplotlib_a_sentence_says_what_to_install(
    labels: SoftLabels, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent: dict[str, ModuleType | None] = {"matplotlib": None, "matplotlib.pyplot": None}
    for name, module in absent.items():
        monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
    with pytest.raises(softgold.errors.UsageError, match=r"plots need matplotlib: pip install 'softgold\[plot\]'"):
        softgold.plot.soft_labels(labels)


@pytest.mark.slow
def test_matplotlib_is_imported_when_it_is_used() -> None:
    script = "import sys, softgold.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
