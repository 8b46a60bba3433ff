"""Match the experts' answers with the soft labels, and put the labelled items into bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from softgold.checks import FloatArray
from softgold.errors import InputError, UsageError
from softgold.experts.bins import BinTable, IntArray, Scheme, assign_bins
from softgold.experts.evidence import Design, Evidence
from softgold.experts.panel import NO_LABEL, ExpertPanel
from softgold.experts.rules import ThresholdRule
from softgold.experts.sampling import CLASSES, MOST_STRATA, ExpertSample
from softgold.tables.ids import compare_ids, find_ids, repeated_id
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

# A key is written and read back as text, so its soft labels are equal to the last digits.
SAME_P = 1e-9
# Bins that the caller did not ask for hold this many labels on average.
LABELS_PER_BIN = 10


@dataclass(frozen=True, eq=False)
class AlignedExperts:
    """The usable part of the experts' answers.

    Attributes:
        panel: The experts who labelled an item of the soft labels, and the items that one of them labelled.
        position: Where these N items are among the soft labels, shape (N,).
        evidence: Their soft labels and bins.
        n_unsure: How often each expert of the source answered "unsure" about a known item, by name.
        unknown: Items that experts answered about and that were left out because the soft labels or the key lack them.
    """

    panel: ExpertPanel
    position: IntArray
    evidence: Evidence
    n_unsure: dict[str, int]
    unknown: tuple[str, ...]

    @property
    def n_groups(self) -> int:
        """Number of groups among the labelled items; 0 without groups."""
        return 0 if self.evidence.groups is None else int(self.evidence.groups.max(initial=-1)) + 1


def align_experts(
    soft_labels: SoftLabels,
    experts: ExpertPanel,
    rule: ThresholdRule,
    *,
    bins: int | None = None,
    scheme: Scheme = "rank",
    sample: ExpertSample | None = None,
    ignore_unknown: bool = False,
) -> AlignedExperts:
    """Match the experts' items with the soft labels, and put them into bins.

    With a `sample`, bins are those of its key. Without, they are cut over all soft labels: `bins` of them, by default
    one for every 10 labels and at most 20; the rule `paper` has 20 rank bins. A sample of a run with several classes
    has strata of the largest p, which give the weights; bins of a class are cut over its own soft labels.
    """
    item_ids = soft_labels.item_ids.astype("str")
    if repeated_id(item_ids) is not None:
        raise InputError("soft labels need one row per item, and an item is duplicated")
    if sample is None:
        known, unknown = _known(experts, item_ids, "the soft labels", ignore_unknown)
    else:
        _check_key(sample, soft_labels, item_ids, rule)
        known, unknown = _known(experts, sample.item_ids, "the key of the sample", ignore_unknown)
    n_unsure = dict(zip(map(str, known.expert_ids), known.unsure.sum(axis=1).tolist(), strict=True))
    given = known.answers != NO_LABEL
    panel = known.take(given.any(axis=1), given.any(axis=0))
    position = find_ids(item_ids, panel.item_ids)
    if sample is None:
        index, table = _cut_bins(soft_labels.p, rule, bins, scheme, len(panel.item_ids))
        evidence = Evidence(soft_labels.p[position], index[position], table)
    else:
        at = sample.item_ids.get_indexer(panel.item_ids)
        evidence = Evidence(soft_labels.p[position], sample.bin[at], sample.bins)
        if sample.bins.scheme == CLASSES:
            index, table = _cut_bins(soft_labels.p, rule, bins, scheme, len(panel.item_ids))
            strata = Design(sample.bin[at], sample.bins.n_items)
            evidence = Evidence(soft_labels.p[position], index[position], table, strata)
    return AlignedExperts(panel, position, evidence, n_unsure, unknown)


def with_groups(aligned: AlignedExperts, groups: pd.Series) -> AlignedExperts:
    """Give the labelled items their groups; each must have one, and there must be two groups or more."""
    items = aligned.panel.item_ids.astype("str")
    by_item = pd.Series(groups.to_numpy(), index=groups.index.astype("str"))
    names = by_item[~by_item.index.duplicated()].reindex(items)
    if names.isna().any():
        first, count = items[int(np.argmax(names.isna()))], int(names.isna().sum())
        raise InputError(
            f"{count} of {len(items)} labelled items have no group ({groups.name or 'group'}), such as {first!r}; "
            "give every item one"
        )
    codes, found = pd.factorize(names)
    if len(found) == 1:
        raise InputError(f"all {len(items)} labelled items belong to one group, {str(found[0])!r}: nothing to redraw")
    return replace(aligned, evidence=replace(aligned.evidence, groups=codes.astype(np.intp)))


def detector_scores(scores: Scores, item_ids: pd.Index[str], whose: str) -> dict[str, FloatArray]:
    """Return the scores of the given items by detector; an item without scores raises."""
    at = find_ids(scores.item_ids, item_ids)
    if (at < 0).any():
        missing = _listed(item_ids[at < 0])
        raise InputError(f"the scores lack {int((at < 0).sum())} {whose}: {missing}")
    return {model: scores.of(model)[at] for model in scores.models}


def _cut_bins(
    p: FloatArray, rule: ThresholdRule, bins: int | None, scheme: Scheme, n_labelled: int
) -> tuple[IntArray, BinTable]:
    if rule.name == "paper":
        if bins not in (None, MOST_STRATA) or scheme != "rank":
            raise UsageError(f"rule 'paper' has {MOST_STRATA} rank bins; take rule 'changepoint' for others")
        bins = MOST_STRATA
    if bins is None:
        bins = int(np.clip(n_labelled // LABELS_PER_BIN, 2, MOST_STRATA))
    elif bins < 2:
        raise UsageError(f"bins must be a whole number of at least 2, got {bins!r}")
    index = assign_bins(p, bins, scheme=scheme)
    return index, BinTable.from_items(p, index, scheme)


def _known(
    experts: ExpertPanel, item_ids: pd.Index[str], where: str, ignore_unknown: bool
) -> tuple[ExpertPanel, tuple[str, ...]]:
    answered = ((experts.answers != NO_LABEL) | experts.unsure).any(axis=0)
    here = find_ids(item_ids, experts.item_ids.astype("str")) >= 0
    unknown = experts.item_ids[answered & ~here]
    if answered.any() and not (answered & here).any():
        examples = compare_ids(unknown, "the expert labels", item_ids, where)
        raise InputError(f"none of the {answered.sum()} items that experts answered is in {where}: {examples}")
    if len(unknown) and not ignore_unknown:
        raise InputError(
            f"experts answered {len(unknown)} items that are not in {where}: {_listed(unknown)}; "
            "correct the ids, or give --ignore-unknown (ignore_unknown=True) to go on without them"
        )
    everybody = np.ones(experts.n_experts, dtype=np.bool_)
    return experts.take(everybody, here), tuple(str(name) for name in unknown)


def _check_key(sample: ExpertSample, soft_labels: SoftLabels, item_ids: pd.Index[str], rule: ThresholdRule) -> None:
    if rule.name == "paper" and sample.bins.scheme != "paper":
        raise UsageError("rule 'paper' needs a sheet of 'sample-experts --scheme paper'; take rule 'changepoint'")
    at = find_ids(item_ids, sample.item_ids)
    if (at < 0).any():
        missing = _listed(sample.item_ids[at < 0])
        raise InputError(f"the key was not made from these soft labels: they lack {missing}")
    if sample.bins.n_items.sum() != len(item_ids):
        raise InputError(
            f"the key was not made from these soft labels: its strata hold "
            f"{sample.bins.n_items.sum()} items, and there are {len(item_ids)} soft labels"
        )
    if sample.bins.scheme == CLASSES:
        return  # its p is the largest of all classes, which `check_class_key` compares
    differs = np.abs(soft_labels.p[at] - sample.p) > SAME_P
    if differs.any():
        first = int(differs.argmax())
        raise InputError(
            f"the key was not made from these soft labels: item {sample.item_ids[first]!r} has p {sample.p[first]:g} "
            f"in the key and {soft_labels.p[at[first]]:g} in the soft labels"
        )


def _listed(names: Sequence[str] | pd.Index[str], limit: int = 5) -> str:
    shown = ", ".join(repr(str(name)[:60]) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
