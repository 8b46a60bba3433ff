"""The first paragraph of a report: size, certainty, agreement with experts, next steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from softgold.evaluation.words import list_names
from softgold.experts import Calibration
from softgold.models.base import ADVERSARIAL
from softgold.runs import Run, Study
from softgold.tables.classes import ClassLabels
from softgold.tables.soft_labels import SoftLabels

CLEAR = 0.9  # a soft label above this, or below 1 minus it, is clear
DOUBT = 0.25  # an item whose label is wrong with more than this chance is in doubt


def tells_abilities(run: Run) -> bool:
    """Return whether the model says how able annotators are; a baseline does not."""
    return run.has("annotators") and "ability_mean" in run.annotators and len(run.annotators) > 0


def in_doubt(soft: SoftLabels) -> int:
    """Return the number of items with p between 0.25 and 0.75."""
    return int((soft.uncertainty > DOUBT).sum())


def run_lead(run: Run) -> str:
    """Return the paragraph for one question."""
    soft = run.brief_labels
    return " ".join(text for text in (_size(run), _sureness(soft), _experts(run), _people(run), _advice(run)) if text)


def _size(run: Run) -> str:
    soft = run.brief_labels
    if not run.has("fit"):
        return f"There are soft labels of {len(soft):,} items."
    votes = run.votes_in_parts
    counts = votes.item_counts
    even = counts.min() == counts.max()
    each = f"{counts[0]:,} on each" if even else f"half of the items have {np.median(counts):g} votes or more"
    people = "person" if votes.n_annotators == 1 else "people"
    return f"{votes.n_annotators:,} {people} gave {votes.n_votes:,} votes on {len(soft):,} items, {each}."


def _sureness(soft: SoftLabels) -> str:
    clear = float(((soft.p > CLEAR) | (soft.p < 1 - CLEAR)).mean())
    return (
        f"The answer is clear (above {CLEAR:.0%} sure) for {clear:.0%} of the items and in doubt (less than 75% sure) "
        f"for {in_doubt(soft):,}. If every item got its likelier label, about "
        f"{100 * soft.uncertainty.mean():.1f} of 100 labels would be wrong."
    )


def _experts(run: Run) -> str:
    if not run.has("calibration"):
        return ""
    found = run.brief_calibration
    if not found.n_labelled:
        return ""
    return (
        f"Experts labelled {int(found.bins['labelled'].sum()):,} items; labels cut at p = {found.threshold:.2f} agree "
        f"with them in {found.after.agreement:.0%}, labels cut at 0.5 in {found.before.agreement:.0%}."
    )


def _people(run: Run) -> str:
    if not tells_abilities(run):
        return ""
    bad = int((run.annotators["p_adversarial"] > ADVERSARIAL).sum())
    if not bad:
        return ""
    return f"{bad} of the annotators probably {'says' if bad == 1 else 'say'} the opposite of what is true."


def _advice(run: Run) -> str:
    if not run.has("calibration"):
        return "Next: let experts label a sample (softgold sample-experts), so that a threshold can be calibrated."
    return _doubt_advice(in_doubt(run.brief_labels))


def calibrations(study: Study) -> dict[str, Calibration]:
    """Return the calibration of each question or class that experts labelled."""
    found = {name: run.brief_calibration for name, run in study.tasks.items() if run.has("calibration")}
    return {name: one for name, one in found.items() if one.n_labelled}


def study_lead(study: Study) -> str:
    """Return the paragraph for several questions or classes."""
    sizes = _class_size(study.class_labels) if study.kind == "classes" else _question_size(study)
    found = calibrations(study)
    noun = "class" if study.kind == "classes" else "question"
    words = (sizes, _study_experts(found, noun), _study_advice(study, found, noun))
    return " ".join(text for text in words if text) + f" Every section below has a tab per {noun}."


def _class_size(labels: ClassLabels) -> str:
    doubtful = int((labels.uncertainty > DOUBT).sum())
    return (
        f"{len(labels):,} items in {len(labels.classes)} classes. If every item got its likeliest class, about "
        f"{100 * labels.uncertainty.mean():.1f} of 100 labels would be wrong; {doubtful:,} items are in doubt (less "
        "than 75% sure)."
    )


def _question_size(study: Study) -> str:
    soft = {name: run.brief_labels for name, run in study.tasks.items()}
    wrong = {name: float(labels.uncertainty.mean()) for name, labels in soft.items()}
    hardest, easiest = max(wrong, key=wrong.__getitem__), min(wrong, key=wrong.__getitem__)
    doubtful = sum(in_doubt(labels) for labels in soft.values())
    return (
        f"{len(soft)} questions on {sum(map(len, soft.values())):,} items in all, each with its own abilities, "
        f"prevalence and threshold. If every item got its likelier label, between {wrong[easiest]:.1%} ({easiest}) and "
        f"{wrong[hardest]:.1%} ({hardest}) of the labels would be wrong; {doubtful:,} items are in doubt (less than "
        "75% sure)."
    )


def _study_experts(found: Mapping[str, Calibration], noun: str) -> str:
    """Say what experts labelled, and how labels agree with them; an expert labels an item for all classes at once."""
    if not found:
        return ""
    labelled = [one.n_labelled for one in found.values()]
    count = max(labelled) if noun == "class" else sum(labelled)
    before, after = (
        {name: getattr(one, side).agreement for name, one in found.items()} for side in ("before", "after")
    )
    known = [name for name in found if not math.isnan(after[name]) and not math.isnan(before[name])]
    if not known:
        return f"Experts labelled {count:,} items."
    worst, best = min(known, key=after.__getitem__), max(known, key=after.__getitem__)
    at_half, at_cut = (np.mean([side[name] for name in known]) for side in (before, after))
    how = ", one class against the rest," if noun == "class" else ""
    return (
        f"Experts labelled {count:,} items. Cut at the threshold of each {noun}, labels agree with them{how} in "
        f"{after[worst]:.0%} ({worst}) to {after[best]:.0%} ({best}), on average in {at_cut:.1%}; cut at 0.5, in "
        f"{at_half:.1%}."
    )


def _study_advice(study: Study, found: Mapping[str, Calibration], noun: str) -> str:
    if not found:
        return f"Next: let experts label a sample (softgold sample-experts), so that each {noun} gets its threshold."
    left = [name for name in study.tasks if name not in found]
    if left:
        return f"Next: let experts label a sample of {list_names(left)}, too, which they have not labelled so far."
    if noun == "class":
        return _doubt_advice(int((study.class_labels.uncertainty > DOUBT).sum()))
    doubtful = {name: in_doubt(run.brief_labels) for name, run in study.tasks.items()}
    worst = max(doubtful, key=doubtful.__getitem__)
    most = f" {worst} has the most, {doubtful[worst]:,}." if doubtful[worst] else ""
    return _doubt_advice(sum(doubtful.values())) + most


def _doubt_advice(doubtful: int) -> str:
    if doubtful:
        return f"Next: collect more votes on the {doubtful:,} items in doubt, or let an expert decide them."
    return "Next: nothing is urgent; every label is fairly sure."
