"""A plan kept in a small JSON file, so that its rounds can be days apart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgold.errors import StorageError
from softgold.imaging.duplicates.plan import AnsweredRound, DuplicatePlan, Round
from softgold.output import settle, write_json

FORMAT = "softgold near-duplicate plan"
VERSION = 1


def save_plan(plan: DuplicatePlan, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a plan atomically.

    Args:
        plan: The plan.
        path: A `.json` file.
        force: Replace an existing file.
    """
    rounds = [
        {
            "first": part.first,
            "second": part.second,
            "distance": part.distance,
            "positive": part.positive.astype(int) if isinstance(part, AnsweredRound) else None,
        }
        for part in plan.rounds
    ]
    state = {
        "format": FORMAT,
        "version": VERSION,
        "digest": plan.digest,
        "finished": plan.finished,
        "ids": list(plan.ids),
        "rounds": rounds,
    }
    write_json(state, path, force=force)


def load_plan(path: str | os.PathLike[str]) -> DuplicatePlan:
    """Read a plan, or say what is wrong with the file."""
    settle(path)
    if Path(path).exists() and not Path(path).is_file():
        raise StorageError(f"cannot read the plan {path}: it is not a regular file")
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"cannot read the plan {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise StorageError(f"the plan {path} is damaged: it is not JSON ({error})") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise StorageError(f"{path} is not a near-duplicate plan of softgold")
    if state.get("version") != VERSION:
        raise StorageError(f"the plan {path} has version {state.get('version')!r}; this softgold reads {VERSION}")
    try:
        return _plan(state)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StorageError(f"the plan {path} is damaged: {error}") from None


def _plan(state: dict[str, Any]) -> DuplicatePlan:
    ids, digest, finished, rounds = (state[key] for key in ("ids", "digest", "finished", "rounds"))
    if not isinstance(ids, list) or len(ids) < 2 or not all(isinstance(name, str) for name in ids):
        raise ValueError("'ids' must be a list of texts")
    if len(set(ids)) != len(ids):
        raise ValueError("'ids' has a duplicated id")
    if not isinstance(digest, str) or not isinstance(finished, bool) or not isinstance(rounds, list):
        raise ValueError("'digest', 'finished' or 'rounds' is of the wrong kind")
    parts = tuple(_round(part, len(ids), last=number == len(rounds)) for number, part in enumerate(rounds, start=1))
    if finished and parts and not isinstance(parts[-1], AnsweredRound):
        raise ValueError("it is finished and awaits answers")
    return DuplicatePlan(pd.Index(ids, dtype="str"), digest, parts, finished)


def _round(part: dict[str, Any], n: int, *, last: bool) -> Round:
    first, second = (np.array(part[name], dtype=np.int64).reshape(-1) for name in ("first", "second"))
    distance = np.array(part["distance"], dtype=np.float64).reshape(-1)
    answers = part["positive"]
    positive = None if answers is None else np.array(answers, dtype=np.int64).reshape(-1)
    if positive is None and not last:
        raise ValueError("a round before the last has no answers")
    lengths = {len(first), len(second), len(distance)} | (set() if positive is None else {len(positive)})
    if len(lengths) != 1:
        raise ValueError("the parts of a round have different lengths")
    if not np.isfinite(distance).all() or (first < 0).any() or (first >= second).any() or (second >= n).any():
        raise ValueError("a pair is not of two samples, the lower first")
    if positive is None:
        return Round(first, second, distance)
    if not np.isin(positive, (0, 1)).all():
        raise ValueError("an answer is neither 0 nor 1")
    return AnsweredRound(first, second, distance, positive.astype(bool))
