"""64-bit hashes of texts, all at once, for telling which ids may be equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse among 64-bit numbers
INVERSE = np.uint64(pow(int(FACTOR), -1, 2**64))


def mixed(values: Hashes) -> Hashes:
    """Return well-mixed 64-bit numbers (the finaliser of SplitMix64), so that sums of them tell multisets apart."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def text_hashes(texts: pa.Array) -> Hashes:
    """Return a 64-bit hash of each text, shape (n,): equal texts have equal hashes, different ones rarely do.

    The hash of bytes b_0 ... b_n is the sum of (b_j + 1) FACTOR^j, from running sums over all texts at once.

    >>> first, second, third = text_hashes(pa.array(["a7", "b7", "a7"]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    array = texts.cast(pa.large_string())
    _, places, data = array.buffers()
    ends = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
    if len(array) == 0 or data is None:
        return mixed(np.zeros(len(array), np.uint64))
    letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].astype(np.uint64) + np.uint64(1)
    ends = ends - ends[0]
    sums = np.zeros(len(letters) + 1, np.uint64)
    np.cumsum(letters * _powers(FACTOR, len(letters)), out=sums[1:])
    found = (sums[ends[1:]] - sums[ends[:-1]]) * _powers(INVERSE, len(letters) + 1)[ends[:-1]]
    return mixed(found ^ mixed(np.diff(ends).astype(np.uint64)))


def _powers(base: np.uint64, count: int) -> Hashes:
    """Return base^0, base^1, ... of 64-bit numbers, shape (count,)."""
    found = np.full(count, base, np.uint64)
    found[:1] = 1
    return np.cumprod(found, dtype=np.uint64)
