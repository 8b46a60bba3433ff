"""The answers to one question of an export, as a table of item, annotator and vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import Source
from softgold.readers.exports.export import Export
from softgold.readers.exports.questions import select_question

# What an export without votes has, and what to do with it.
INSTEAD_OF_VOTES = {
    "shapes": "boxes, masks or other shapes and no votes on whole items; use 'softgold convergence' for what annotators"
    " drew",
    "spans": "text spans and no votes on whole items, which is what softgold reads",
    "texts": "free texts and no choices; name a question with --question to take its texts as values",
}


@dataclass(frozen=True)
class ExportSource:
    """A source of one row per answer.

    Attributes:
        name: What to call it in an error.
        export: The answers to the one question.
        found: What the whole export has, in one sentence.
        positive_used: Answers of several choices have become votes of 0 and 1.
    """

    name: str
    export: Export = field(repr=False)
    found: str = ""
    positive_used: bool = False
    columns: tuple[str, ...] = ("item", "annotator", "vote")

    @classmethod
    def of(cls, export: Export, question: str | None, positive: str | None) -> ExportSource:
        """Take one question of an export; one without votes is an error that says what it has instead."""
        if not export.n_answers:
            raise no_votes(export)
        chosen = select_question(export, question, positive)
        found = "; ".join([export.summary(), *export.notes])
        return cls(export.name, chosen, found, chosen.questions[0] not in export.questions)

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions, as codes and texts."""
        export = self.export
        coded = (
            (export.items, export.item_codes),
            (export.annotators, export.annotator_codes),
            (export.values, export.value_codes),
        )
        columns = [self._column(*coded[position]) for position in positions]
        return [
            column.cast(pa.int64()) if position == 0 and export.whole_items else column
            for position, column in zip(positions, columns, strict=True)
        ]

    def _column(self, texts: Sequence[str], codes: NDArray[np.int32]) -> pa.ChunkedArray:
        return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts, pa.string()))])

    def where(self, row: int) -> str:
        """Say which answer it is, counted from 1."""
        return f"answer {row + 1}"


def origin_of(source: Source) -> str:
    """Say what export a source is, and what it has; empty for a plain table."""
    return source.found if isinstance(source, ExportSource) else ""


def no_votes(export: Export) -> InputError:
    """Build the error for an export in which nothing is a vote on an item."""
    for kind, words in INSTEAD_OF_VOTES.items():
        if export.counts.get(kind):
            return InputError(f"{export.name} ({export.title}) holds {export.counts[kind]:,} {words}")
    if export.gold:
        return InputError(
            f"{export.name} ({export.title}) holds {len(export.gold):,} gold labels and no answers; "
            "'softgold import' with --gold-out FILE writes them as a table of experts"
        )
    return InputError(f"{export.name} has no votes: {export.summary()}")
