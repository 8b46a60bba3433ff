"""The cards at the top of a page: key numbers with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from softgold.checks import FloatArray
from softgold.errors import StorageError
from softgold.experts import Calibration
from softgold.report.blocks import Tile, named
from softgold.report.expert_section import expert_tile
from softgold.report.label_sections import adversaries
from softgold.report.lead import calibrations, tells_abilities
from softgold.report.model_section import leading_words
from softgold.runs import RESULTS, Run, Study

Given = TypeVar("Given")
Built = TypeVar("Built")

NORMAL_95 = 1.96


def built(build: Callable[[Given], Built], result: Given, name: str) -> Built:
    """Build a section or tile from a result whose file may have been edited: right types, but with parts missing."""
    try:
        return build(result)
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, OverflowError) as error:
        raise StorageError(f"{RESULTS[name].record} is not what softgold writes: {error!r}; make it again") from error


def run_tiles(run: Run) -> tuple[Tile, ...]:
    """Return the cards of one question."""
    soft = run.brief_labels
    tiles = [
        Tile(f"{len(soft):,}", "items", f"{soft.n_votes.sum():,} votes" if soft.n_votes.any() else ""),
        wrong_tile([soft.uncertainty], "if soft labels were cut at 0.5"),
    ]
    if tells_abilities(run):
        bad = len(adversaries(run.annotators))
        tiles.append(Tile(f"{len(run.annotators):,}", "annotators", f"{bad} of them adversaries" if bad else ""))
    if run.has("calibration"):
        tiles.append(built(expert_tile, run.brief_calibration, "calibration"))
    if run.has("evaluation"):
        leading = built(leading_words, run.evaluation, "evaluation")
        if leading is not None:
            tiles.append(Tile(*leading))
    return tuple(tiles)


def wrong_tile(uncertainty: Sequence[FloatArray], words: str) -> Tile:
    """Return the share of wrong labels to expect, with the 95 % interval of that share where the soft labels are right.

    The number of wrong labels is a sum of independent draws, each with the uncertainty u of its item: mean sum u,
    variance sum u (1 - u).

    Args:
        uncertainty: Chance that each label is wrong, one array or several.
        words: What labels these are.

    >>> wrong_tile([np.full(100, 0.2)], "cut at 0.5").words
    'cut at 0.5; 95% interval 12.2% to 27.8%, if the soft labels are right'
    """
    every = np.concatenate(list(uncertainty))
    mean, spread = float(every.mean()), NORMAL_95 * math.sqrt(float((every * (1 - every)).sum())) / len(every)
    span = f"95% interval {max(0.0, mean - spread):.1%} to {min(1.0, mean + spread):.1%}"
    return Tile(f"{mean:.1%}", "labels expected wrong", f"{words}; {span}, if the soft labels are right")


def study_tiles(study: Study) -> tuple[Tile, ...]:
    """Return the cards of several questions or classes; of a number per question, the extremes with their intervals."""
    is_classes = study.kind == "classes"
    count = f"{len(study.soft_labels_frame()):,} {'items' if is_classes else 'soft labels'}"
    tiles = [Tile(f"{len(study.tasks):,}", "classes" if is_classes else "questions", count)]
    if is_classes:
        tiles.append(wrong_tile([study.class_labels.uncertainty], "if every item got its likeliest class"))
    else:
        every = [run.brief_labels.uncertainty for run in study.tasks.values()]
        tiles.append(wrong_tile(every, "over all questions, if soft labels were cut at 0.5"))
    found = calibrations(study)
    if found:
        tiles += built(_expert_tiles, found, "calibration")
    leading = None
    if study.has("evaluation"):
        leading = built(leading_words, study.evaluation, "evaluation")
    elif study.has("class_evaluation"):
        leading = built(leading_words, study.class_evaluation.per_class, "evaluation")
    return tuple(tiles) if leading is None else (*tiles, Tile(*leading))


def _expert_tiles(found: Mapping[str, Calibration]) -> list[Tile]:
    """Return the range of the thresholds, and the lowest agreement with the experts."""
    ordered = sorted(found, key=lambda name: found[name].threshold)
    low, high = (found[name].threshold for name in (ordered[0], ordered[-1]))
    words = "; ".join(_threshold_words(name, found[name]) for name in dict.fromkeys((ordered[0], ordered[-1])))
    tiles = [Tile(f"{low:.3f}" if len(found) == 1 else f"{low:.3f}–{high:.3f}", "experts' thresholds", words)]
    rates = {name: one.error_rates for name, one in found.items() if not math.isnan(one.error_rates.accuracy.value)}
    if rates:
        worst = min(rates, key=lambda name: rates[name].accuracy.value)
        rate, level = rates[worst].accuracy, rates[worst].level
        words = f"{named(worst).text}; {level:.0%} interval {rate.low:.1%} to {rate.high:.1%}"
        tiles.append(Tile(f"{rate.value:.1%}", "lowest agreement with experts", words))
    return tiles


def _threshold_words(name: str, found: Calibration) -> str:
    span = found.interval("both")
    return f"{named(name).text}: {span.level:.0%} interval {span.low:.3f} to {span.high:.3f}"
