"""The questions of an export: which to take, which ask for free text, and which allow several choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.exports.base import Export

__all__ = ["no_such_question", "select_question", "vote_frame", "without_free_texts"]

# Answers in more different words than these are texts, not choices.
MOST_CHOICES = 20
LONGEST_CHOICE = 60
MOST_LISTED = 12


def no_such_question(name: str, question: str, there: Sequence[str]) -> InputError:
    """Build the error for a question that the export does not have."""
    return InputError(f"{name} has no answers to question {shorten(question)}; its questions: {listed(there)}")


def listed(names: Sequence[str]) -> str:
    """Return names in quotes, the first dozen of them."""
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return (", ".join(shorten(name) for name in names[:MOST_LISTED]) or "none") + more


def without_free_texts(export: Export) -> Export:
    """Leave out the questions whose answers are free texts: many different ones, or long ones."""
    free = [question for question in export.questions if _is_free_text(export, question)]
    if not free:
        return export
    keep = ~np.isin(export.question_codes, [export.questions.index(question) for question in free])
    kept = _rows(export, keep)
    counts = dict(export.counts)
    counts["texts"] = counts.get("texts", 0) + export.n_answers - kept.n_answers
    note = f"free text, left out unless chosen with --question: {listed(free)}"
    return replace(kept, counts=counts, notes=(*export.notes, note))


def _is_free_text(export: Export, question: str) -> bool:
    counts = export.value_counts(question)
    answers = sum(counts.values())
    lengths = sum(len(value) for value in counts)
    return (len(counts) > MOST_CHOICES and 2 * len(counts) > answers) or lengths > LONGEST_CHOICE * len(counts)


def _rows(export: Export, keep: NDArray[np.bool_]) -> Export:
    """Return the export with some of its rows, and with the items, annotators and questions that these have."""
    item_codes, items = _used(export.item_codes[keep], export.items)
    annotator_codes, annotators = _used(export.annotator_codes[keep], export.annotators)
    question_codes, questions = _used(export.question_codes[keep], export.questions)
    value_codes, values = _used(export.value_codes[keep], export.values)
    answers = export.answer_codes[keep]
    return replace(
        export,
        items=items,
        annotators=annotators,
        questions=questions,
        values=values,
        item_codes=item_codes,
        annotator_codes=annotator_codes,
        question_codes=question_codes,
        value_codes=value_codes,
        answer_codes=np.unique(answers, return_inverse=True)[1].astype(np.int32),
    )


def _used(codes: NDArray[np.int32], texts: Sequence[str]) -> tuple[NDArray[np.int32], list[str]]:
    used, new = np.unique(codes, return_inverse=True)
    return new.astype(np.int32), [texts[code] for code in used]


def select_question(export: Export, question: str | None, positive: str | None) -> Export:
    """Return the answers to one question; several to choose from are an error that lists them.

    A question with several choices per answer becomes one of yes and no: is `positive`, or the value after the colon
    in "question: value", among the choices?
    """
    if question is None:
        if len(export.questions) > 1:
            raise InputError(
                f"{export.name} has answers to {len(export.questions)} questions: {listed(export.questions)}; "
                "choose one with --question NAME (question=)"
            )
        question = export.questions[0]
    base, value = _split(export, question)
    chosen = _rows(export, export.question_codes == export.questions.index(base))
    if value is not None or base in chosen.multiple:
        return _yes_or_no(chosen, base, value if value is not None else positive)
    return chosen


def _split(export: Export, question: str) -> tuple[str, str | None]:
    if question in export.questions:
        return question, None
    for base in export.questions:
        if question.startswith(f"{base}: "):
            value = question.removeprefix(f"{base}: ")
            if value not in export.value_counts(base):
                raise no_such_value(export, base, value)
            return base, value
    raise no_such_question(export.name, question, export.questions)


def no_such_value(export: Export, question: str, value: str) -> InputError:
    """Build the error for a value that nobody chose."""
    there = [f"{shorten(name)} ({count:,})" for name, count in export.value_counts(question).items()]
    more = f" and {len(there) - MOST_LISTED} more" if len(there) > MOST_LISTED else ""
    return InputError(
        f"{export.name}: no answer to {shorten(question)} is {shorten(value)}; the answers are "
        f"{', '.join(there[:MOST_LISTED])}{more}"
    )


def _yes_or_no(export: Export, question: str, value: str | None) -> Export:
    """Return one row per answer: 1 if the value is among its choices, else 0."""
    if value is None:
        counts = list(export.value_counts(question))
        raise InputError(
            f"{export.name}: an answer to {shorten(question)} may have several values; say with --positive VALUE "
            f"(positive=) which one counts as a vote of 1: {listed(counts)}"
        )
    if value not in export.value_counts(question):
        raise no_such_value(export, question, value)
    hits = export.value_codes == export.values.index(value)
    first = np.flatnonzero(np.diff(export.answer_codes, prepend=-1))
    votes = np.bincount(export.answer_codes, weights=hits, minlength=export.n_answers) > 0
    return replace(
        _rows(export, np.isin(np.arange(len(hits)), first)),
        questions=[f"{question}: {value}"],
        values=["0", "1"],
        value_codes=votes.astype(np.int32),
    )


def vote_frame(export: Export) -> pd.DataFrame:
    """Return the votes as a table: item, annotator, task where there are several questions, and vote.

    A question with several choices per answer becomes one task of yes and no per choice.
    """
    if not export.n_answers:
        return _frame(export).drop(columns="task")
    parts: list[Export] = []
    for question in export.questions:
        alone = _rows(export, export.question_codes == export.questions.index(question))
        if question in export.multiple:
            parts += [_yes_or_no(alone, question, value) for value in alone.value_counts(question)]
        else:
            parts.append(alone)
    frame = pd.concat([_frame(part) for part in parts], ignore_index=True)
    return frame if len(parts) > 1 else frame.drop(columns="task")


def _frame(export: Export) -> pd.DataFrame:
    columns = {
        "item": (export.items, export.item_codes),
        "annotator": (export.annotators, export.annotator_codes),
        "task": (export.questions, export.question_codes),
        "vote": (export.values, export.value_codes),
    }
    index = {name: (pd.Index(list(texts), dtype="str"), codes) for name, (texts, codes) in columns.items()}
    return pd.DataFrame({name: texts.take(codes) for name, (texts, codes) in index.items()})
