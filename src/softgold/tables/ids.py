"""Ids are stored as text; the name of an index records whether they were whole numbers, to restore them.

Ids of millions of items are compared as Arrow text: pandas would make a Python object of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from softgold.tables.hashing import text_hashes

WHOLE = {"int64", "uint64"}
AT_ONCE = 100_000


def restore_ids(ids: pd.Index[Any]) -> pd.Index[Any]:
    """Return ids in the type in which they came.

    >>> restore_ids(pd.Index(["7", "12"], dtype="str", name="int64")).tolist()
    [7, 12]
    >>> restore_ids(pd.Index(["007"], dtype="str")).tolist()
    ['007']
    """
    return ids.astype(str(ids.name)).rename(None) if ids.name in WHOLE else ids


def compare_ids(left: pd.Index[Any], left_name: str, right: pd.Index[Any], right_name: str) -> str:
    """Say what the ids of two tables look like, for a join that finds nothing.

    >>> compare_ids(pd.Index(["1.png"]), "the scores", pd.Index(["1", "2"]), "the soft labels")
    "ids in the scores look like '1.png'; ids in the soft labels look like '1', '2'"
    """
    return f"ids in {left_name} look like {_examples(left)}; ids in {right_name} look like {_examples(right)}"


def _examples(ids: pd.Index[Any], shown: int = 3) -> str:
    return (
        ", ".join(repr(text if len(text) <= 40 else f"{text[:40]}...") for text in map(str, ids[:shown])) or "nothing"
    )


def find_ids(ids: pd.Index[Any], wanted: pd.Index[Any]) -> NDArray[np.intp]:
    """Return where each of some ids is among `ids`, which has each once; -1 for one that is not there.

    >>> find_ids(pd.Index(["x", "y", "z"], dtype="str"), pd.Index(["z", "w", "z"], dtype="str")).tolist()
    [2, -1, 2]
    """
    if len(ids) == len(wanted) and ids.equals(wanted):
        return np.arange(len(ids))
    if not (_is_arrow(ids) and _is_arrow(wanted)):
        return ids.get_indexer(wanted)
    known, asked = as_arrow(ids), as_arrow(wanted)
    if len(known) <= len(asked):
        return _places(asked, known)
    # The table of hashes is made of the smaller side.
    place = np.full(len(asked), -1, dtype=np.intp)
    for start in range(0, len(known), AT_ONCE):
        at = _places(known.slice(start, AT_ONCE), asked)
        found = np.flatnonzero(at >= 0)
        place[at[found]] = start + found
    return place[_places(asked, asked)]


def first_repeat(texts: pa.Array | pa.ChunkedArray) -> int | None:
    """Return the position of the first text that came before, or None where all differ.

    >>> first_repeat(pa.array(["x", "y", "x"])), first_repeat(pa.array(["x", "y"]))
    (2, None)
    """
    hashes = _hashes(texts)
    hashes.sort()
    twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if not len(twice):
        return None
    suspects = np.flatnonzero(np.isin(_hashes(texts), twice, kind="sort"))  # the few that share a hash
    repeated = pd.Series(texts.take(pa.array(suspects)).to_pylist()).duplicated().to_numpy()
    return int(suspects[repeated.argmax()]) if repeated.any() else None


def repeated_id(ids: pd.Index[Any]) -> Any:
    """Return the first id that is duplicated, or None where there is none."""
    if not _is_arrow(ids):
        return ids[ids.duplicated()][0] if ids.has_duplicates else None
    at = first_repeat(as_arrow(ids))
    return None if at is None else ids[at]


def _is_arrow(ids: pd.Index[Any]) -> bool:
    return isinstance(ids.dtype, pd.StringDtype) and ids.dtype.storage == "pyarrow" and not ids.hasnans


def as_arrow(ids: pd.Index[Any]) -> pa.Array:
    """Return ids as one array of Arrow text, also where their index holds it in several."""
    texts = pa.array(ids.array)
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _places(texts: pa.Array, among: pa.Array) -> NDArray[np.intp]:
    found = pc.index_in(texts, value_set=among.cast(texts.type))
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)


def _hashes(texts: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    parts = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    slices = [part.slice(start, AT_ONCE) for part in parts for start in range(0, len(part), AT_ONCE)]
    found = [text_hashes(some) for some in slices]
    return np.concatenate(found) if found else np.empty(0, np.uint64)
