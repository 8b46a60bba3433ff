"""Stratified sampling for expert review: spend the experts' time where labels change decisions.

Items are cut into strata by soft label. The default ("neyman") draws from stratum h in proportion to
N_h sqrt(p_h (1 - p_h)), the allocation that estimates an error rate with the smallest variance, with a floor for every
stratum; "paper" draws the same number from each of 20 rank bins (CleanPatrick, section 3.4). The experts get a sheet
without soft labels, in random order. The key keeps what they must not see: the stratum, p, and the design weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq

from softgold.checks import FloatArray, as_probabilities, check_choice, check_positive_int
from softgold.errors import InputError, warn
from softgold.experts.bins import BinTable, IntArray, Scheme, assign_bins, uncertainty_score
from softgold.experts.sheets import make_sheet
from softgold.readers import read_soft_labels
from softgold.readers.sources import TableLike, open_source
from softgold.tables.classes import ClassLabels
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.text import as_text

SampleScheme = Literal["neyman", "paper"]
MOST_STRATA = 20
CLASSES = "classes"
"""Scheme of a key whose strata are those of the largest p among several classes."""
LABELS_PER_STRATUM = 10
# Every stratum gets at least this part of an equal share.
FLOOR = 0.25

KEY_COLUMNS = (
    "item",
    "bin",
    "p",
    "weight",
    "bin_sampled",
    "bin_items",
    "bin_p_mean",
    "bin_p_low",
    "bin_p_high",
    "bins",
    "scheme",
)


@dataclass(frozen=True, eq=False)
class ExpertSample:
    """Items drawn for the experts, and the key to them.

    Attributes:
        item_ids: Sampled items in the order of the sheet, which is random, length N.
        p: Their soft labels, shape (N,).
        bin: Their strata, shape (N,).
        bins: What the strata hold of the whole data set.

    Example:
        >>> from softgold import fit, sample_for_experts, simulate
        >>> votes = simulate(n_items=300, n_annotators=20, seed=0).votes
        >>> labels = fit(votes, engine="coordinate").posterior.soft_labels()
        >>> sample = sample_for_experts(labels, budget=40)
        >>> len(sample.item_ids), sample.sheet().columns.tolist(), round(float(sample.weight.sum()))
        (40, ['item', 'answer'], 300)
    """

    item_ids: pd.Index[str]
    p: FloatArray
    bin: IntArray
    bins: BinTable

    def __len__(self) -> int:
        return len(self.item_ids)

    @property
    def sampled_per_bin(self) -> NDArray[np.int64]:
        """Sampled items in each stratum, shape (K,)."""
        return np.bincount(self.bin, minlength=len(self.bins)).astype(np.int64)

    @property
    def weight(self) -> FloatArray:
        """How many items of the data set each sampled item stands for: stratum size / sampled, shape (N,)."""
        return self.bins.n_items[self.bin] / self.sampled_per_bin[self.bin]

    def sheet(self, context: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return what the experts see, see `make_sheet`: `item`, context columns, and an empty column `answer`."""
        return make_sheet(self.item_ids, context)

    def key(self) -> pd.DataFrame:
        """Return the key, `KEY_COLUMNS`, sorted by stratum; not for the experts."""
        at = self.bin
        columns = {
            "item": self.item_ids,
            "bin": at,
            "p": self.p,
            "weight": self.weight,
            "bin_sampled": self.sampled_per_bin[at],
            "bin_items": self.bins.n_items[at],
            "bin_p_mean": self.bins.p_mean[at],
            "bin_p_low": self.bins.p_low[at],
            "bin_p_high": self.bins.p_high[at],
            "bins": len(self.bins),
            "scheme": self.bins.scheme,
        }
        return pd.DataFrame(columns).sort_values("bin", kind="stable", ignore_index=True)

    @classmethod
    def from_key(cls, key: pd.DataFrame) -> ExpertSample:
        """Rebuild a sample from its key; the order of the sheet is not in it."""
        missing = [name for name in KEY_COLUMNS if name not in key.columns]
        if missing:
            raise InputError(f"a key needs the columns {', '.join(KEY_COLUMNS)}; missing: {', '.join(missing)}")
        if key.empty or key["bins"].nunique() != 1 or key["scheme"].nunique() != 1:
            raise InputError("a key needs rows of one sample, with one value in 'bins' and one in 'scheme'")
        if key["item"].duplicated().any():
            raise InputError(f"item {key['item'][key['item'].duplicated()].iloc[0]!r} is duplicated in the key")
        names = ["bin", "p", "bin_sampled", "bin_items", "bin_p_mean", "bin_p_low", "bin_p_high", "bins"]
        numbers = _numeric(key, names)
        bins = int(numbers["bins"].iloc[0])
        index = numbers["bin"].to_numpy(dtype=np.intp)
        if index.min() < 0 or index.max() >= bins:
            raise InputError(f"bins in the key must lie in 0 .. {bins - 1}, got {index.min()} .. {index.max()}")
        per_bin = numbers.groupby(index).first().reindex(range(bins))
        _check_complete(per_bin, index, bins)
        table = BinTable(
            str(key["scheme"].iloc[0]),
            per_bin["bin_items"].fillna(0).to_numpy(dtype=np.int64),
            *(per_bin[f"bin_p_{name}"].to_numpy(dtype=np.float64) for name in ("mean", "low", "high")),
        )
        p = as_probabilities(numbers["p"].to_numpy(), "p of the key")
        return cls(pd.Index(key["item"].astype("str"), dtype="str"), p, index, table)


def sample_for_experts(
    soft_labels: SoftLabels | TableLike, budget: int = 400, *, scheme: SampleScheme = "neyman", seed: int = 0
) -> ExpertSample:
    """Draw items for expert review.

    Fewer items than the budget: all of them, with a warning. The same arguments give the same sample.

    Args:
        soft_labels: Soft labels of the whole data set, or a table that `read_soft_labels` reads.
        budget: Number of items that each expert can label.
        scheme: "neyman": strata of equal uncertainty, one for every 10 labels and at most 20, and the allocation
            N_h sqrt(p_h (1 - p_h)). "paper": 20 rank bins with the same number of items from each; a bin that holds
            several because of equal p gives as many as they would.
        seed: Seed of the draw and of the order of the sheet.

    Example:
        >>> p = np.concatenate([np.full(900, 0.01), np.full(100, 0.5)])
        >>> soft = pd.DataFrame({"item": [f"x{i}" for i in range(1000)], "p": p})
        >>> sample = sample_for_experts(soft, 100)
        >>> sample.sampled_per_bin.tolist(), sample.bins.n_items.tolist(), round(float(sample.weight.sum()))
        ([64, 36], [900, 100], 1000)
    """
    table = soft_labels if isinstance(soft_labels, SoftLabels) else read_soft_labels(soft_labels)
    check_positive_int(budget, "budget")
    check_positive_int(seed, "seed", minimum=0)
    check_choice(scheme, get_args(SampleScheme), "scheme")
    return _draw(table.item_ids, table.p, budget, scheme, seed)


def sample_classes(labels: ClassLabels, budget: int = 400, *, seed: int = 0) -> ExpertSample:
    """Draw items of a run with several classes for experts, who are asked for the class.

    As the scheme "neyman" of `sample_for_experts`, with p the probability of the most probable class: most items come
    from where that class may well be wrong.

    Args:
        labels: Soft labels of all classes.
        budget: Number of items that each expert can label.
        seed: Seed of the draw and of the order of the sheet.

    Example:
        >>> p = np.repeat([[0.98, 0.01, 0.01], [0.5, 0.3, 0.2]], [900, 100], axis=0)
        >>> ids = pd.Index([f"x{i}" for i in range(1000)])
        >>> sample = sample_classes(ClassLabels(ids, ("a", "b", "c"), p, np.full(1000, 5)), 100)
        >>> sample.bins.scheme, sample.sampled_per_bin.tolist(), round(float(sample.weight.sum()))
        ('classes', [28, 72], 1000)
    """
    check_positive_int(budget, "budget")
    check_positive_int(seed, "seed", minimum=0)
    drawn = _draw(labels.item_ids, labels.p.max(axis=1), budget, "neyman", seed)
    return replace(drawn, bins=replace(drawn.bins, scheme=CLASSES))


def _draw(item_ids: pd.Index[str], p: FloatArray, budget: int, scheme: SampleScheme, seed: int) -> ExpertSample:
    if budget > len(p):
        warn(f"the budget of {budget} labels is larger than the data set: all {len(p)} items are on the sheet")
    index = assign_bins(p, _n_strata(budget, scheme), scheme=_bin_scheme(scheme))
    bins = BinTable.from_items(p, index, scheme)
    n_drawn = allocate(bins.n_items, _scores(p, index, bins, scheme), min(budget, len(p)))
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(index))
    by_bin = shuffled[np.argsort(index[shuffled], kind="stable")]
    place = np.arange(len(index)) - np.repeat(np.cumsum(bins.n_items) - bins.n_items, bins.n_items)
    drawn = rng.permutation(by_bin[place < np.repeat(n_drawn, bins.n_items)])
    return ExpertSample(item_ids.take(drawn), p[drawn], index[drawn], bins)


def allocate(sizes: NDArray[np.int64], scores: FloatArray, budget: int) -> NDArray[np.int64]:
    """Return how many items to draw from each stratum, summing to `budget`.

    The numbers are proportional to the scores, between a floor (a quarter of an equal share, at least 1) and the size
    of the stratum; what small strata cannot use goes to the others.

    Args:
        sizes: Items in each stratum, shape (K,), none of them 0.
        scores: Wanted proportions, positive, shape (K,).
        budget: Total, at most the sum of the sizes.

    Example:
        >>> allocate(np.array([1000, 30, 1000]), np.array([1.0, 50.0, 49.0]), 100).tolist()
        [8, 30, 62]
    """
    floor = np.minimum(sizes, max(1, int(FLOOR * budget / len(sizes))))
    if floor.sum() >= budget:  # fewer labels than strata: the highest scores have one each
        order = np.argsort(-scores, kind="stable")
        return np.isin(np.arange(len(sizes)), order[:budget]).astype(np.int64)

    def clipped(scale: float) -> FloatArray:
        return np.clip(scale * scores, floor, sizes).astype(np.float64)

    # At this scale every stratum is full, so the root lies below it.
    largest = float((sizes / scores).max()) + 1.0
    share = clipped(largest if budget >= sizes.sum() else brentq(lambda c: clipped(c).sum() - budget, 0.0, largest))
    whole = np.floor(share + 1e-9).astype(np.int64)
    left = budget - int(whole.sum())
    order = np.argsort(-np.where(whole < sizes, share - whole, -1.0), kind="stable")
    whole[order[:left]] += 1
    return whole


def read_key(source: TableLike) -> ExpertSample:
    """Read the key of a sample from a file, `-` or a data frame."""
    table = open_source(source)
    columns = table.load(range(len(table.columns)))
    frame = pd.DataFrame(
        {name: as_text(column.to_pandas()) for name, column in zip(table.columns, columns, strict=True)}
    )
    try:
        return ExpertSample.from_key(frame)
    except InputError as error:
        raise InputError(f"{table.name}: {error}") from None


def _n_strata(budget: int, scheme: SampleScheme) -> int:
    if scheme == "paper":
        return min(MOST_STRATA, budget)
    return int(np.clip(budget // LABELS_PER_STRATUM, min(2, budget), MOST_STRATA))


def _bin_scheme(scheme: SampleScheme) -> Scheme:
    return "rank" if scheme == "paper" else "neyman"


def _scores(p: FloatArray, index: IntArray, bins: BinTable, scheme: SampleScheme) -> FloatArray:
    if scheme == "paper":
        return bins.n_items.astype(np.float64)
    return np.bincount(index, weights=uncertainty_score(p), minlength=len(bins)).astype(np.float64)


def _check_complete(per_bin: pd.DataFrame, index: IntArray, bins: int) -> None:
    """A key that lost rows, or gained some, would give wrong weights."""
    found = np.bincount(index, minlength=bins)
    expected = per_bin["bin_sampled"].fillna(0).to_numpy(dtype=np.int64)
    if (found != expected).any():
        at = int((found != expected).argmax())
        raise InputError(
            f"the key has {found[at]} rows of bin {at} and says that {expected[at]} were drawn; give the key as written"
        )


def _numeric(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    numbers = pd.DataFrame({name: pd.to_numeric(frame[name], errors="coerce") for name in names})
    for name in names:
        bad = ~np.isfinite(numbers[name].to_numpy(dtype=np.float64))
        if bad.any():
            row = int(np.argmax(bad))
            value = frame[name].iloc[row]
            raise InputError(f"column {name!r} of the key must be a number, got {value!r} in row {row + 1}")
    return numbers
