"""The first paragraph of a report: how much there is, how sure it is, how good against experts, what to do next."""

from __future__ import annotations

import numpy as np

from softgold.models.base import ADVERSARIAL
from softgold.runs import Run, Study
from softgold.tables.soft_labels import SoftLabels

__all__ = ["CLEAR", "in_doubt", "run_lead", "study_lead", "tells_abilities"]

CLEAR = 0.9  # a soft label above this, or below 1 minus it, is clear


def tells_abilities(run: Run) -> bool:
    """Return whether the model says how able annotators are; a baseline does not."""
    return run.has("annotators") and "ability_mean" in run.annotators and len(run.annotators) > 0


def in_doubt(soft: SoftLabels) -> int:
    """Return the number of items with p between 0.25 and 0.75."""
    return int((soft.uncertainty > 0.25).sum())


def run_lead(run: Run) -> str:
    """Return the paragraph for one question."""
    soft = run.soft_labels
    return " ".join(text for text in (_size(run), _sureness(soft), _experts(run), _people(run), _advice(run)) if text)


def _size(run: Run) -> str:
    soft = run.soft_labels
    if not run.has("fit"):
        return f"There are soft labels of {len(soft):,} items."
    votes = run.votes
    each = np.median(votes.item_counts)
    people = "person" if votes.n_annotators == 1 else "people"
    return (
        f"{votes.n_annotators:,} {people} gave {votes.n_votes:,} votes on {len(soft):,} items, "
        f"half of the items have {each:g} votes or more."
    )


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
    found = run.calibration
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
    doubtful = in_doubt(run.soft_labels)
    if not run.has("calibration"):
        return "Next: let experts label a sample (softgold sample-experts), so that a threshold can be calibrated."
    if doubtful:
        return f"Next: collect more votes on the {doubtful:,} items in doubt, or let an expert decide them."
    return "Next: nothing is urgent; every label is fairly sure."


def study_lead(study: Study) -> str:
    """Return the paragraph for several questions or classes."""
    tasks = study.tasks
    if study.kind == "classes":
        labels = study.class_labels
        return (
            f"{len(labels):,} items in {len(tasks)} classes. If every item got its likeliest class, about "
            f"{100 * labels.uncertainty.mean():.1f} of 100 labels would be wrong."
        )
    soft = {name: run.soft_labels for name, run in tasks.items()}
    wrong = {name: float(labels.uncertainty.mean()) for name, labels in soft.items()}
    hardest, easiest = max(wrong, key=wrong.__getitem__), min(wrong, key=wrong.__getitem__)
    doubtful = sum(in_doubt(labels) for labels in soft.values())
    return (
        f"{len(tasks)} questions on {sum(map(len, soft.values())):,} items in all, each with its own abilities, "
        f"prevalence and threshold. If every item got its likelier label, between {wrong[easiest]:.1%} ({easiest}) and "
        f"{wrong[hardest]:.1%} ({hardest}) of the labels would be wrong; {doubtful:,} items are in doubt (less than "
        "75% sure). The table below compares the questions; every section has a tab for each of them."
    )
