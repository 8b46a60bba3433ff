"""Whom to ask and about what: items for expert review, spread over the whole range of soft labels.

Soft labels pile up at 0 and 1, so a plain random sample would hardly ever show an expert a doubtful item. Items are
cut into bins by soft label and the same number is drawn from each (CleanPatrick, section 3.4). The experts get a sheet
without soft labels, in random order; the key keeps what they must not see and what later estimates need: the bin, and
the weight that puts an answer back on the scale of the whole data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_probabilities, check_choice, check_positive_int
from softgold.errors import InputError, warn
from softgold.readers.sources import TableLike, open_source
from softgold.tables.soft_labels import SoftLabels

__all__ = ["KEY_COLUMNS", "BinTable", "ExpertSample", "Scheme", "assign_bins", "read_key", "sample_for_experts"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Scheme = Literal["rank", "width"]

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


def assign_bins(p: ArrayLike, bins: int, *, scheme: Scheme = "rank", seed: int | None = 0) -> IntArray:
    """Return the bin of each item, shape (I,), numbered from 0 at the lowest soft labels.

    Args:
        p: Soft labels, shape (I,).
        bins: Number of bins, at least 2 and at most I.
        scheme: "rank" cuts the items, sorted by p, into equally many (`numpy.array_split`): the quantile bins of
            CleanPatrick, which by value would collapse where soft labels pile up. "width" cuts [0, 1] into equal parts.
        seed: Seed of the shuffle before the stable sort, which decides where equal soft labels fall; None keeps
            them in the order of the items.

    Example:
        >>> assign_bins([0, 0, 0, 0.2, 0.9, 1], 3, seed=None).tolist()
        [0, 0, 1, 1, 2, 2]
        >>> assign_bins([0, 0, 0, 0.2, 0.9, 1], 3, scheme="width").tolist()
        [0, 0, 0, 0, 2, 2]
    """
    values = as_probabilities(p, "p")
    check_positive_int(bins, "bins", minimum=2)
    check_choice(scheme, get_args(Scheme), "scheme")
    if seed is not None:
        check_positive_int(seed, "seed", minimum=0)
    if bins > len(values):
        raise InputError(f"{bins} bins need at least {bins} items, and there are {len(values)}; ask for fewer bins")
    if scheme == "width":
        return np.minimum((values * bins).astype(np.intp), bins - 1)
    shuffled = np.arange(len(values)) if seed is None else np.random.default_rng(seed).permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    index = np.empty(len(values), dtype=np.intp)
    for number, members in enumerate(np.array_split(order, bins)):
        index[members] = number
    return index


@dataclass(frozen=True, eq=False)
class BinTable:
    """What each of K bins holds of the whole data set; an empty bin has 0 items and NaN elsewhere.

    Attributes:
        scheme: How the bins were cut.
        n_items: Items in each bin, shape (K,).
        p_mean: Their mean soft label, shape (K,).
        p_low: Their lowest soft label, shape (K,).
        p_high: Their highest soft label, shape (K,).
    """

    scheme: str
    n_items: NDArray[np.int64]
    p_mean: FloatArray
    p_low: FloatArray
    p_high: FloatArray

    def __len__(self) -> int:
        return len(self.n_items)

    @classmethod
    def of(cls, p: FloatArray, index: IntArray, bins: int, scheme: str) -> BinTable:
        """Summarise soft labels by bin.

        >>> table = BinTable.of(np.array([0.0, 0.2, 0.9]), np.array([0, 0, 2]), 3, "width")
        >>> table.n_items.tolist(), table.p_mean.tolist()
        ([2, 0, 1], [0.1, nan, 0.9])
        """
        groups = pd.Series(p).groupby(index).agg(["size", "mean", "min", "max"]).reindex(range(bins))
        n_items = groups["size"].fillna(0).to_numpy(dtype=np.int64)
        mean, low, high = (groups[name].to_numpy(dtype=np.float64) for name in ("mean", "min", "max"))
        # The mean of equal numbers may be off by rounding, and then [p >= mean] would cut them off.
        return cls(scheme, n_items, np.clip(mean, low, high), low, high)


@dataclass(frozen=True, eq=False)
class ExpertSample:
    """Items drawn for the experts, and the key to them.

    Attributes:
        item_ids: Sampled items in the order of the sheet, which is random, length N.
        p: Their soft labels, shape (N,).
        bin: Their bins, shape (N,).
        bins: What the bins hold of the whole data set.
    """

    item_ids: pd.Index[str]
    p: FloatArray
    bin: IntArray
    bins: BinTable

    def __len__(self) -> int:
        return len(self.item_ids)

    @property
    def sampled_per_bin(self) -> NDArray[np.int64]:
        """Sampled items in each bin, shape (K,)."""
        return np.bincount(self.bin, minlength=len(self.bins)).astype(np.int64)

    @property
    def weight(self) -> FloatArray:
        """How many items of the data set each sampled item stands for: bin size / sampled, shape (N,)."""
        return self.bins.n_items[self.bin] / self.sampled_per_bin[self.bin]

    def sheet(self) -> pd.DataFrame:
        """Return what the experts see: `item, label`, the label to be filled with 0 or 1, no soft labels."""
        return pd.DataFrame({"item": self.item_ids, "label": pd.Series([""] * len(self), dtype="str")})

    def key(self) -> pd.DataFrame:
        """Return the key, `KEY_COLUMNS`, sorted by bin; not for the experts."""
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
            raise InputError(f"item {key['item'][key['item'].duplicated()].iloc[0]!r} is in the key twice")
        numbers = _numeric(key, ["bin", "p", "bin_items", "bin_p_mean", "bin_p_low", "bin_p_high", "bins"])
        bins = int(numbers["bins"].iloc[0])
        index = numbers["bin"].to_numpy(dtype=np.intp)
        if index.min() < 0 or index.max() >= bins:
            raise InputError(f"bins in the key must lie in 0 .. {bins - 1}, got {index.min()} .. {index.max()}")
        per_bin = numbers.groupby(index).first().reindex(range(bins))
        table = BinTable(
            str(key["scheme"].iloc[0]),
            per_bin["bin_items"].fillna(0).to_numpy(dtype=np.int64),
            *(per_bin[f"bin_p_{name}"].to_numpy(dtype=np.float64) for name in ("mean", "low", "high")),
        )
        p = as_probabilities(numbers["p"].to_numpy(), "p of the key")
        return cls(pd.Index(key["item"].astype("str"), dtype="str"), p, index, table)


def sample_for_experts(
    soft_labels: SoftLabels, *, bins: int = 20, per_bin: int = 20, scheme: Scheme = "rank", seed: int = 0
) -> ExpertSample:
    """Draw items for expert review, the same number from each bin of soft labels.

    A bin with fewer items than asked gives them all, with a warning. The same arguments give the same sample.

    Args:
        soft_labels: Soft labels of the whole data set.
        bins: Number of bins.
        per_bin: Items to draw from each.
        scheme: How the bins are cut, see `assign_bins`.
        seed: Seed of the cut at equal soft labels, of the draw, and of the order of the sheet.

    Example:
        >>> from softgold.tables.soft_labels import SoftLabels
        >>> p = np.linspace(0, 1, 100)
        >>> ids = pd.Index([f"x{i}" for i in range(100)])
        >>> labels = SoftLabels(ids, p, p, np.full(100, 3), 3 * p, "mean")
        >>> sample = sample_for_experts(labels, bins=5, per_bin=4)
        >>> len(sample), sample.sampled_per_bin.tolist(), float(sample.weight.sum())
        (20, [4, 4, 4, 4, 4], 100.0)
        >>> sample.sheet().columns.tolist()
        ['item', 'label']
    """
    check_positive_int(per_bin, "per_bin")
    index = assign_bins(soft_labels.p, bins, scheme=scheme, seed=seed)
    table = BinTable.of(soft_labels.p, index, bins, scheme)
    _say_short_bins(table, per_bin)
    rng = np.random.default_rng([seed, 1])  # a stream apart from the one that cut the bins
    shuffled = rng.permutation(len(index))
    by_bin = shuffled[np.argsort(index[shuffled], kind="stable")]
    place = np.arange(len(index)) - np.repeat(np.cumsum(table.n_items) - table.n_items, table.n_items)
    drawn = rng.permutation(by_bin[place < per_bin])
    return ExpertSample(soft_labels.item_ids.take(drawn), soft_labels.p[drawn], index[drawn], table)


def read_key(source: TableLike) -> ExpertSample:
    """Read the key of a sample from a file, `-` or a data frame."""
    table = open_source(source)
    columns = table.load(range(len(table.columns)))
    frame = pd.DataFrame(
        {name: column.to_pandas().astype("str") for name, column in zip(table.columns, columns, strict=True)}
    )
    try:
        return ExpertSample.from_key(frame)
    except InputError as error:
        raise InputError(f"{table.name}: {error}") from None


def _say_short_bins(table: BinTable, per_bin: int) -> None:
    short = [f"bin {number} has {size}" for number, size in enumerate(table.n_items) if size < per_bin]
    if short:
        more = f" and {len(short) - 5} more bins" if len(short) > 5 else ""
        warn(f"fewer items than the {per_bin} asked for, so all of them are given: {', '.join(short[:5])}{more}")


def _numeric(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    numbers = pd.DataFrame({name: pd.to_numeric(frame[name], errors="coerce") for name in names})
    for name in names:
        bad = ~np.isfinite(numbers[name].to_numpy(dtype=np.float64))
        if bad.any():
            row = int(np.argmax(bad))
            value = frame[name].iloc[row]
            raise InputError(f"column {name!r} of the key must be a number, got {value!r} in row {row + 1}")
    return numbers
