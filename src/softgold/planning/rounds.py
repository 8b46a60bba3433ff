"""The loop of a campaign: new votes join a run, which is refitted from where it stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_choice, check_in_range
from softgold.errors import InputError, UsageError, warn
from softgold.models.base import Fit, OnProgress, fit
from softgold.output import PathLike, stamps
from softgold.readers.base import shorten
from softgold.runs import Round, open_run, save_fit
from softgold.runs.records import RunRecord
from softgold.tables.votes import VoteTable

Conflict = Literal["error", "first", "last", "all"]


@dataclass(frozen=True, eq=False)
class Update:
    """What an update did.

    Attributes:
        fit: The new fit.
        history: The rounds so far, the new one last.
        new_items: Items that were not in the run.
        new_annotators: Annotators who were not in the run.
        largest_change: Largest change of p of an item that was in the run.
    """

    fit: Fit
    history: tuple[Round, ...]
    new_items: int
    new_annotators: int
    largest_change: float

    def __str__(self) -> str:
        before, last = self.history[-2:]
        return (
            f"{last.new_votes:,} new votes, {last.votes:,} in all; {self.new_items:,} new items, "
            f"{self.new_annotators:,} new annotators; expected share of wrong labels {before.expected_error:.2%} -> "
            f"{last.expected_error:.2%}; {self.fit.diagnostics.sweeps} sweeps"
        )


def update_run(
    path: PathLike,
    new_votes: VoteTable,
    *,
    duplicates: Conflict = "error",
    cost_per_vote: float | None = None,
    source: str | None = None,
    on_progress: OnProgress | None = None,
) -> Update:
    """Add votes to a run and fit it again, with its model and settings, from where it stood.

    The run directory is replaced atomically; a calibration or an evaluation in it stays, and `run.problems()` says
    that it was made with older soft labels.

    Args:
        path: The run directory.
        new_votes: Votes to add; items and annotators may be known or new.
        duplicates: What to do when somebody has voted differently on the same item before: "error", keep the "first",
            keep the "last", or keep "all". An equal vote is dropped with a warning.
        cost_per_vote: What a vote costs, for the history.
        source: File that the votes came from, for the history.
        on_progress: Called after every sweep or step.

    Example:
        >>> import tempfile, softgold
        >>> votes = softgold.simulate(n_items=50, n_annotators=12, seed=0).votes.to_frame()
        >>> folder = tempfile.mkdtemp() + "/run"
        >>> softgold.fit(votes[:-20], engine="coordinate").save(folder)
        >>> update = update_run(folder, softgold.read_votes(votes[-20:]), cost_per_vote=0.05)
        >>> [(part.new_votes, part.cost) for part in update.history]
        [(480, None), (20, 1.0)]
    """
    if cost_per_vote is not None:
        check_in_range(cost_per_vote, 0.0, np.inf, "cost_per_vote")
    run = open_run(path)
    with run.reading():
        before, record, began = run.fit, run.record, stamps(path)
    votes = merge_votes(before.votes, new_votes, duplicates)
    added = votes.n_votes - before.votes.n_votes
    after = fit(votes, model=before.model, start=before.posterior, on_progress=on_progress, **asdict(before.settings))
    cost = None if cost_per_vote is None else cost_per_vote * new_votes.n_votes
    history = (*(record.history or (_first_round(before, record),)), _round(after, added, cost, source))
    update = Update(
        after,
        history,
        votes.n_items - before.votes.n_items,
        votes.n_annotators - before.votes.n_annotators,
        _largest_change(before, after),
    )
    source = record.input.source  # of the first round; the history has the others
    save_fit(after, path, samples=record.samples, source=source, force=True, history=history, began=began)
    return update


def _first_round(found: Fit, record: RunRecord) -> Round:
    return _round(found, found.votes.n_votes, None, record.input.source)


def _round(found: Fit, added: int, cost: float | None, source: str | None) -> Round:
    votes = found.votes
    error = float(found.posterior.soft_labels().uncertainty.mean())
    return Round(added, votes.n_votes, votes.n_items, votes.n_annotators, error, cost, source)


def _largest_change(before: Fit, after: Fit) -> float:
    known = after.posterior.item_ids.get_indexer(before.posterior.item_ids)
    change = after.posterior.soft_labels().p[known] - before.posterior.soft_labels().p
    return float(np.abs(change).max())


def merge_votes(old: VoteTable, new: VoteTable, duplicates: Conflict = "error") -> VoteTable:
    """Return the votes of two tables as one, those of `old` first.

    Raises:
        InputError: Somebody voted differently before, or there is no new vote.

    Example:
        >>> one = VoteTable.from_codes([0, 0], [0, 1], [1, 0], ["x"], ["ann", "bob"])
        >>> two = VoteTable.from_codes([0], [0], [1], ["y"], ["ann"])
        >>> merge_votes(one, two).n_items
        2
    """
    check_choice(duplicates, get_args(Conflict), "duplicates")
    item_ids, annotator_ids = (
        ids.append(more[ids.get_indexer(more) < 0])
        for ids, more in ((old.item_ids, new.item_ids), (old.annotator_ids, new.annotator_ids))
    )
    items = item_ids.get_indexer(new.item_ids)[new.item_codes]
    annotators = annotator_ids.get_indexer(new.annotator_ids)[new.annotator_codes]
    width = len(annotator_ids)
    old_keys = old.item_codes.astype(np.int64) * width + old.annotator_codes
    new_keys = items * width + annotators
    keep_old, keep_new = _kept(old, new, old_keys, new_keys, duplicates)
    if not keep_new.any():
        raise InputError(f"there is no new vote: all {new.n_votes:,} are in the run already")
    return _joined(
        (old, new),
        (keep_old, keep_new),
        np.concatenate([old.item_codes[keep_old], items[keep_new]]),
        np.concatenate([old.annotator_codes[keep_old], annotators[keep_new]]),
        (item_ids, annotator_ids),
    )


def _kept(
    old: VoteTable, new: VoteTable, old_keys: NDArray[np.int64], new_keys: NDArray[np.int64], rule: Conflict
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which votes of both tables stay."""
    keep_old, keep_new = np.ones(old.n_votes, dtype=bool), np.ones(new.n_votes, dtype=bool)
    again = np.isin(new_keys, old_keys)
    if rule == "all" or not again.any():
        return keep_old, keep_new
    order = np.argsort(old_keys, kind="stable")
    former = old.votes[order[np.minimum(np.searchsorted(old_keys[order], new_keys), old.n_votes - 1)]]
    differs = again & (former != new.votes)
    if rule == "error" and differs.any():
        raise _conflict(new, differs, former)
    equal = again & ~differs
    if equal.any():
        warn(f"{int(equal.sum()):,} of the new votes are in the run already and count once")
    keep_new = ~equal if rule == "last" else ~again
    if rule == "last":
        keep_old = ~np.isin(old_keys, new_keys[differs])
    return keep_old, keep_new


def _conflict(new: VoteTable, differs: NDArray[np.bool_], former: NDArray[np.int8]) -> InputError:
    row = int(np.argmax(differs))
    who = shorten(new.annotator_ids[new.annotator_codes[row]])
    item = shorten(new.item_ids[new.item_codes[row]])
    return InputError(
        f"{int(differs.sum()):,} new votes differ from votes of the same annotator in the run, first of {who} "
        f"on item {item}: {former[row]} before, {new.votes[row]} now; choose with --duplicates (duplicates=) first, "
        "last or all"
    )


def _joined(
    tables: tuple[VoteTable, VoteTable],
    kept: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    items: NDArray[np.intp],
    annotators: NDArray[np.intp],
    ids: Sequence[pd.Index[str]],
) -> VoteTable:
    old, new = tables
    weights = None
    if old.weights is not None or new.weights is not None:
        each = [np.ones(one.n_votes) if one.weights is None else one.weights for one in tables]
        weights = np.concatenate([part[keep] for part, keep in zip(each, kept, strict=True)])
    if old.weights is not None and not kept[0].all():
        raise UsageError(
            "the votes of this run are means of repeated votes, which a new vote cannot replace; fit again"
        )
    return VoteTable.from_codes(
        items,
        annotators,
        np.concatenate([one.votes[keep] for one, keep in zip(tables, kept, strict=True)]),
        *ids,
        weights=weights,
        n_abstentions=old.n_abstentions + new.n_abstentions,
        abstained_items=_still_silent(old.abstained_items + new.abstained_items, ids[0]),
        abstained_annotators=_still_silent(old.abstained_annotators + new.abstained_annotators, ids[1]),
        notes=(*old.notes, *new.notes),
    )


def _still_silent(names: tuple[str, ...], voters: pd.Index[str]) -> tuple[str, ...]:
    """Return those who have abstained and not voted yet, each once."""
    return tuple(name for name in dict.fromkeys(names) if name not in voters)
