"""The answers in an export, as codes and texts, and the tables that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import counted, printable, shorten
from softgold.readers.columns import listed

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
            counted(len(self.items), "item"),
            counted(len(self.annotators), "annotator"),
            counted(len(self.questions), "question") + self._question_names(),
            counted(self.n_answers, "vote"),
            *([counted(len(self.gold), "gold label")] if self.gold else []),
        ]
        special = {kind: f"{KINDS[kind]} {count:,}" for kind, count in self.counts.items() if count}
        kept = [text for kind, text in special.items() if kind in KEPT]
        left = [text for kind, text in special.items() if kind not in KEPT]
        not_votes = f"; not votes: {', '.join(left)}" if left else ""
        return f"{self.title}: {', '.join([*found, *kept])}{not_votes}"

    def _question_names(self) -> str:
        names = [printable(name, 40) for name in self.questions[:MOST_NAMED]]
        return f" ({', '.join(names)}{', ...' if len(self.questions) > MOST_NAMED else ''})" if names else ""

    def take(self, keep: NDArray[np.bool_]) -> Export:
        """Return some of the rows, with the items, annotators, questions and values that these have."""
        parts: dict[str, Any] = {}
        for name in ("item", "annotator", "question", "value"):
            used, codes = np.unique(getattr(self, f"{name}_codes")[keep], return_inverse=True)
            texts = getattr(self, f"{name}s")
            parts |= {f"{name}_codes": codes.astype(np.int32), f"{name}s": [texts[code] for code in used]}
        answers = np.unique(self.answer_codes[keep], return_inverse=True)[1]
        return replace(self, **parts, answer_codes=answers.astype(np.int32))

    def only(self, question: str) -> Export:
        """Return the answers to one question."""
        return self.take(self.question_codes == self.questions.index(question))

    def yes_or_no(self, question: str, value: str) -> Export:
        """Return the answers to one question as 1 where the value is among those chosen, else 0; one row each."""
        counts = self.value_counts(question)
        if value not in counts:
            there = tuple(f"{name} ({count:,})" for name, count in counts.items())
            raise InputError(
                f"{self.name}: no answer to {shorten(question)} is {shorten(value)}; the answers are {listed(there)}"
            )
        answers = self.only(question)
        hits = answers.value_codes == answers.values.index(value)
        votes = np.bincount(answers.answer_codes, weights=hits, minlength=answers.n_answers) > 0
        first = np.diff(answers.answer_codes, prepend=-1) > 0
        return replace(
            answers.take(first),
            questions=[f"{question}: {value}"],
            values=["0", "1"],
            value_codes=votes.astype(np.int32),
        )

    def frame(self) -> pd.DataFrame:
        """Return the votes as a table: item, annotator, task where there are several questions, and vote.

        A question with several values per answer becomes one task of 0 and 1 per value.
        """
        parts: list[Export] = []
        for question in self.questions:
            if question in self.multiple:
                parts += [self.yes_or_no(question, value) for value in self.value_counts(question)]
            else:
                parts.append(self.only(question))
        table = pd.concat([part._columns() for part in parts or [self]], ignore_index=True)
        return table if len(parts) > 1 else table.drop(columns="task")

    def _columns(self) -> pd.DataFrame:
        coded = {
            "item": (self.items, self.item_codes),
            "annotator": (self.annotators, self.annotator_codes),
            "task": (self.questions, self.question_codes),
            "vote": (self.values, self.value_codes),
        }
        texts = {name: (pd.Index(list(words), dtype="str"), codes) for name, (words, codes) in coded.items()}
        return pd.DataFrame({name: words.take(codes) for name, (words, codes) in texts.items()})

    def names_frame(self) -> pd.DataFrame:
        """Return which pseudonym stands for which name."""
        pairs = {"annotator": list(self.pseudonyms.values()), "name": list(self.pseudonyms)}
        return pd.DataFrame(pairs, dtype="str")

    def gold_frame(self) -> pd.DataFrame:
        """Return the gold labels as a table of experts: item, label, and task where there are several questions."""
        rows = list(dict.fromkeys((gold.item, gold.question, gold.value) for gold in self.gold))
        frame = pd.DataFrame(rows, columns=["item", "task", "label"], dtype="str")
        return frame if frame["task"].nunique() > 1 else frame[["item", "label"]]
