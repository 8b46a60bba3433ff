"""The questions of an export: which to take, which ask for free text, and which allow several choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.columns import listed
from softgold.readers.exports.export import Export

# Answers in more different words than these are texts, not choices.
MOST_CHOICES = 20
LONGEST_CHOICE = 60


def no_such_question(name: str, question: str, there: Sequence[str]) -> InputError:
    """Build the error for a question that the export does not have."""
    return InputError(f"{name} has no answers to question {shorten(question)}; its questions: {listed(tuple(there))}")


def without_free_texts(export: Export) -> Export:
    """Leave out the questions whose answers are free texts: many different ones, or long ones."""
    free = [question for question in export.questions if _is_free_text(export, question)]
    if not free:
        return export
    keep = ~np.isin(export.question_codes, [export.questions.index(question) for question in free])
    kept = export.take(keep)
    counts = dict(export.counts)
    counts["texts"] = counts.get("texts", 0) + export.n_answers - kept.n_answers
    note = f"free text, left out unless chosen with --question: {listed(tuple(free))}"
    return replace(kept, counts=counts, notes=(*export.notes, note))


def _is_free_text(export: Export, question: str) -> bool:
    counts = export.value_counts(question)
    answers = sum(counts.values())
    lengths = sum(len(value) for value in counts)
    return (len(counts) > MOST_CHOICES and 2 * len(counts) > answers) or lengths > LONGEST_CHOICE * len(counts)


def select_question(export: Export, question: str | None, positive: str | None) -> Export:
    """Return the answers to one question; several to choose from are an error that lists them.

    A question with several choices per answer becomes one of yes and no: is `positive`, or the value after the colon
    in "question: value", among the choices?
    """
    if question is None:
        if len(export.questions) > 1:
            raise InputError(
                f"{export.name} has answers to {len(export.questions)} questions: {listed(tuple(export.questions))}; "
                "choose one with --question NAME (question=)"
            )
        question = export.questions[0]
    base, value = _split(export, question)
    chosen = value if value is not None else positive
    if value is None and base not in export.multiple:
        return export.only(base)
    if chosen is None:
        raise InputError(
            f"{export.name}: an answer to {shorten(base)} may have several values; say with --positive VALUE "
            f"(positive=) which one counts as a vote of 1: {listed(tuple(export.value_counts(base)))}"
        )
    return export.yes_or_no(base, chosen)


def _split(export: Export, question: str) -> tuple[str, str | None]:
    if question in export.questions:
        return question, None
    for base in export.questions:
        if question.startswith(f"{base}: "):
            return base, question.removeprefix(f"{base}: ")
    raise no_such_question(export.name, question, export.questions)
