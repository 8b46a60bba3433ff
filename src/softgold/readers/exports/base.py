"""The contract of a platform's reader: recognise a file by its content, and return an `Export`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.readers.base import printable
from softgold.readers.contents import Content
from softgold.readers.exports.glimpse import Glimpse

__all__ = ["Export", "ExportFormat", "GoldLabel", "ReadOptions", "as_dict", "as_list"]

Codes = NDArray[np.int32]

# How each kind of record that is not a vote is called in the summary.
KINDS = {
    "skipped": "skipped",
    "cancelled": "cancelled",
    "drafts": "drafts",
    "rejected": "rejected",
    "predictions": "predictions",
    "training": "training answers",
    "merged": "merged annotations",
    "empty": "empty answers",
    "unannotated": "items without an answer",
    "nameless": "among them without an annotator",
    "shapes": "boxes, masks or other shapes",
    "spans": "text spans",
    "texts": "free texts",
    "missed": "among them wrong answers to test questions",
}
KEPT = {"missed", "nameless"}
MOST_NAMED = 6


@dataclass(frozen=True)
class ReadOptions:
    """What the user chose.

    Attributes:
        item: Field of the export that names the items, in place of the platform's own id.
        question: The one question to read.
        keep_names: Leave names and e-mail addresses of annotators as they are.
    """

    item: str | None = None
    question: str | None = None
    keep_names: bool = False


@dataclass(frozen=True)
class ExportFormat:
    """A platform's export.

    Attributes:
        name: As on the command line.
        title: As in messages.
        recognise: Says whether the first records of the files are of this format.
        read: Reads the files.
        whole_folder: Several files belong together; of another format, each file of a folder is an export of its own.
    """

    name: str
    title: str
    recognise: Callable[[Sequence[Glimpse]], bool]
    read: Callable[[Content, ReadOptions], Export]
    whole_folder: bool = False


@dataclass(frozen=True)
class GoldLabel:
    """A label that the platform marks as known to be right."""

    item: str
    question: str
    value: str


@dataclass(frozen=True, eq=False)
class Export:
    """The answers in an export: R rows, one per chosen value, of A answers.

    An answer is what one annotator said to one question about one item. Most answers have one value; an answer to a
    question with several choices has several rows.

    Attributes:
        title: Name of the format, for people.
        name: Name of the file.
        items, annotators, questions, values: Texts by code, in the order of first appearance.
        item_codes, annotator_codes, question_codes, value_codes: Codes of each row, shape (R,).
        answer_codes: Which answer each row belongs to, shape (R,), ascending.
        gold: Labels that are known to be right.
        counts: Records that are not votes, by kind.
        notes: What the reader had to decide, one sentence each.
        whole_items: Every item id was a whole number in the export.
        pseudonyms: Pseudonym of each annotator whose name was replaced.
    """

    title: str
    name: str
    items: Sequence[str]
    annotators: Sequence[str]
    questions: Sequence[str]
    values: Sequence[str]
    item_codes: Codes = field(repr=False)
    annotator_codes: Codes = field(repr=False)
    question_codes: Codes = field(repr=False)
    value_codes: Codes = field(repr=False)
    answer_codes: Codes = field(repr=False)
    gold: tuple[GoldLabel, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    whole_items: bool = False
    pseudonyms: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_answers(self) -> int:
        """Number of answers, each counted once however many values it has."""
        return int(self.answer_codes[-1]) + 1 if len(self.answer_codes) else 0

    @cached_property
    def multiple(self) -> frozenset[str]:
        """Questions to which some answer has several values."""
        repeated = self.answer_codes[1:] == self.answer_codes[:-1]
        return frozenset(self.questions[code] for code in np.unique(self.question_codes[1:][repeated]))

    def value_counts(self, question: str) -> dict[str, int]:
        """How often each value was chosen in answer to a question, most frequent first."""
        rows = self.value_codes[self.question_codes == self.questions.index(question)]
        counts = Counter(rows.tolist())
        return {self.values[code]: count for code, count in counts.most_common()}

    def summary(self) -> str:
        """Say in one sentence what was found."""
        found = [
            _number(len(self.items), "item"),
            _number(len(self.annotators), "annotator"),
            _number(len(self.questions), "question") + self._question_names(),
            _number(self.n_answers, "vote"),
            *([_number(len(self.gold), "gold label")] if self.gold else []),
        ]
        counted = {kind: f"{KINDS[kind]} {count:,}" for kind, count in self.counts.items() if count}
        kept = [text for kind, text in counted.items() if kind in KEPT]
        left = [text for kind, text in counted.items() if kind not in KEPT]
        not_votes = f"; not votes: {', '.join(left)}" if left else ""
        return f"{self.title}: {', '.join([*found, *kept])}{not_votes}"

    def _question_names(self) -> str:
        names = [printable(name, 40) for name in self.questions[:MOST_NAMED]]
        return f" ({', '.join(names)}{', ...' if len(self.questions) > MOST_NAMED else ''})" if names else ""

    def frame(self) -> pd.DataFrame:
        """Return the votes as a table: item, annotator, task where there are several questions, and vote.

        A question with several values per answer becomes one task of 0 and 1 per value.
        """
        from softgold.readers.exports.questions import vote_frame

        return vote_frame(self)

    def names_frame(self) -> pd.DataFrame:
        """Return which pseudonym stands for which name."""
        pairs = {"annotator": list(self.pseudonyms.values()), "name": list(self.pseudonyms)}
        return pd.DataFrame(pairs, dtype="str")

    def gold_frame(self) -> pd.DataFrame:
        """Return the gold labels as a table of experts: item, label, and task where there are several questions."""
        rows = list(dict.fromkeys((gold.item, gold.question, gold.value) for gold in self.gold))
        frame = pd.DataFrame(rows, columns=["item", "task", "label"], dtype="str")
        return frame if frame["task"].nunique() > 1 else frame[["item", "label"]]


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return an array of JSON, or an empty one for anything else."""
    return value if isinstance(value, list) else []
