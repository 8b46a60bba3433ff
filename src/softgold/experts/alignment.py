"""Experts laid beside the soft labels: who labelled what that is not there, and into which bins the labels fall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from softgold.checks import FloatArray
from softgold.errors import InputError
from softgold.experts.choice import Evidence
from softgold.experts.panel import NO_LABEL, ExpertPanel
from softgold.experts.sampling import BinTable, ExpertSample, Scheme, assign_bins
from softgold.experts.thresholds import IntArray
from softgold.tables.experts import ExpertLabels
from softgold.tables.ids import compare_ids
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

__all__ = ["Intake", "detector_scores", "take_in"]

# A key is written and read back as text, so its soft labels are equal to the last digits.
_SAME_P = 1e-9


@dataclass(frozen=True, eq=False)
class Intake:
    """The usable part of the experts' labels.

    Attributes:
        panel: The experts' answers about N items of the soft labels.
        position: Where these items are among the soft labels, shape (N,).
        evidence: Their soft labels and bins.
        ignored: Items that experts labelled and that were left out because the soft labels or the key lack them.
    """

    panel: ExpertPanel
    position: IntArray
    evidence: Evidence
    ignored: tuple[str, ...]


def take_in(
    soft_labels: SoftLabels,
    experts: ExpertLabels,
    *,
    bins: int,
    scheme: Scheme,
    sample: ExpertSample | None,
    seed: int,
    ignore_unknown: bool,
) -> Intake:
    """Match the experts' items with the soft labels, and put them into bins.

    With a `sample`, bins are those of its key; without, they are cut over all soft labels and the labelled items are
    taken where they fall.
    """
    if not soft_labels.item_ids.is_unique:
        raise InputError("soft labels need one row an item, and an item is there twice")
    silent = experts.table.abstained_annotators
    if silent:
        raise InputError(f"expert {silent[0]!r} has no labels; leave out the experts who gave none")
    panel = ExpertPanel.from_labels(experts)
    if sample is None:
        index = assign_bins(soft_labels.p, bins, scheme=scheme, seed=seed)
        table = BinTable.of(soft_labels.p, index, bins, scheme)
        known, ignored = _known(panel, soft_labels.item_ids, "the soft labels", ignore_unknown)
        position = soft_labels.item_ids.get_indexer(known.item_ids)
        return Intake(known, position, Evidence(soft_labels.p[position], index[position], table), ignored)
    _check_key(sample, soft_labels)
    known, ignored = _known(panel, sample.item_ids, "the key of the sample", ignore_unknown)
    position = soft_labels.item_ids.get_indexer(known.item_ids)
    at = sample.item_ids.get_indexer(known.item_ids)
    return Intake(known, position, Evidence(soft_labels.p[position], sample.bin[at], sample.bins), ignored)


def detector_scores(scores: Scores, item_ids: pd.Index[str], whose: str) -> dict[str, FloatArray]:
    """Return the scores of the given items by detector, or say which item has none."""
    at = scores.item_ids.get_indexer(item_ids)
    if (at < 0).any():
        missing = _listed(item_ids[at < 0])
        raise InputError(f"the scores lack {int((at < 0).sum())} {whose}: {missing}")
    return {model: scores.of(model)[at] for model in scores.models}


def _known(
    panel: ExpertPanel, item_ids: pd.Index[str], where: str, ignore_unknown: bool
) -> tuple[ExpertPanel, tuple[str, ...]]:
    here = item_ids.get_indexer(panel.item_ids) >= 0
    unknown = panel.item_ids[~here]
    if not here.any():
        examples = compare_ids(panel.item_ids, "the expert labels", item_ids, where)
        raise InputError(f"none of the {len(here)} items that experts labelled is in {where}: {examples}")
    if len(unknown) and not ignore_unknown:
        raise InputError(
            f"experts labelled {len(unknown)} items that are not in {where}: {_listed(unknown)}; "
            "correct the ids, or give --ignore-unknown (ignore_unknown=True) to go on without them"
        )
    known = panel.take(np.flatnonzero(here))
    without = (known.answers == NO_LABEL).all(axis=1)
    if without.any():
        raise InputError(f"expert {known.expert_ids[int(without.argmax())]!r} labelled no item that is in {where}")
    return known, tuple(str(name) for name in unknown)


def _check_key(sample: ExpertSample, soft_labels: SoftLabels) -> None:
    at = soft_labels.item_ids.get_indexer(sample.item_ids)
    if (at < 0).any():
        missing = _listed(sample.item_ids[at < 0])
        raise InputError(f"the key was not made from these soft labels: they lack {missing}")
    differs = np.abs(soft_labels.p[at] - sample.p) > _SAME_P
    if differs.any():
        first = int(differs.argmax())
        raise InputError(
            f"the key was not made from these soft labels: item {sample.item_ids[first]!r} has p {sample.p[first]:g} "
            f"in the key and {soft_labels.p[at[first]]:g} in the soft labels"
        )


def _listed(names: Sequence[str] | pd.Index[str], limit: int = 5) -> str:
    shown = ", ".join(repr(str(name)[:60]) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
