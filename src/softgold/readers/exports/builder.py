"""Collecting the answers of an export record by record, in a few bytes per answer."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

import numpy as np

from softgold.errors import InputError
from softgold.readers.base import printable, shorten
from softgold.readers.contents import Content, Member
from softgold.readers.exports.base import ReadOptions
from softgold.readers.exports.export import Export, GoldLabel
from softgold.readers.exports.questions import no_such_question, without_free_texts

LARGEST_WHOLE = 2**63
PREFIX = "annotator_"
NAMELESS = "unknown"


def text_of(value: object) -> str | None:
    """Return a scalar as text, or None for what is empty or no scalar.

    >>> text_of(True), text_of(3), text_of(" "), text_of(["x"])
    ('true', '3', None, None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and not math.isnan(value)):
        return str(value)
    return None


class ExportBuilder:
    """Takes answers, gold labels and counts, and gives an `Export`.

    Args:
        title: Name of the format, for people.
        name: Name of the file, for errors.
        options: What the user chose.
        named: Annotators go by account or person names on this platform, which become pseudonyms.
        guess_texts: The platform does not say which questions ask for free text; leave out those that look so.
    """

    def __init__(
        self, title: str, name: str, options: ReadOptions, *, named: bool = False, guess_texts: bool = False
    ) -> None:
        self.title, self.name, self.options = title, name, options
        self._named, self._guess_texts = named, guess_texts
        self._codes: tuple[dict[str, int], ...] = ({}, {}, {}, {})
        self._rows = tuple(array("i") for _ in range(5))
        self._answers = 0
        self._whole_items = True
        self._gold: list[GoldLabel] = []
        self._notes: dict[str, None] = {}
        self._others: dict[str, None] = {}
        self.counts: Counter[str] = Counter()

    def answer(self, item: object, annotator: object, question: str, values: Iterable[object]) -> None:
        """Add one answer; an answer without a value is counted as empty, one without an item is an error."""
        if not self._is_wanted(question):
            self._others.setdefault(question)
            return
        texts = list(dict.fromkeys(text for text in map(text_of, values) if text is not None))
        if not texts:
            self.counts["empty"] += 1
            return
        items, annotators, questions, known = self._codes
        codes = (
            items.setdefault(self._item(item), len(items)),
            annotators.setdefault(self._annotator(annotator), len(annotators)),
            questions.setdefault(question, len(questions)),
        )
        for text in texts:
            row = (*codes, known.setdefault(text, len(known)), self._answers)
            for column, code in zip(self._rows, row, strict=True):
                column.append(code)
        self._answers += 1

    def _is_wanted(self, question: str) -> bool:
        wanted = self.options.question
        return wanted is None or wanted == question or wanted.startswith(f"{question}: ")

    def _item(self, item: object) -> str:
        whole = isinstance(item, int) and not isinstance(item, bool) and -LARGEST_WHOLE <= item < LARGEST_WHOLE
        self._whole_items &= whole
        text = str(item) if whole else text_of(item)
        if text is None:
            raise InputError(f"{self.name}: an answer has no id of its item: got {shorten(item)}")
        return text

    def _annotator(self, annotator: object) -> str:
        text = text_of(annotator)
        if text is None:
            self.counts["nameless"] += 1
            return NAMELESS
        return text

    def gold(self, item: object, question: str, values: Iterable[object]) -> None:
        """Add labels that the platform marks as right; several are alternatives."""
        for text in map(text_of, values):
            if text is not None and self._is_wanted(question):
                self._gold.append(GoldLabel(self._item(item), question, text))

    def note(self, sentence: str) -> None:
        """Remember something that the user should know, once."""
        self._notes.setdefault(sentence)

    def finish(self) -> Export:
        """Return what was collected; a question that was asked for and is not there is an error."""
        items, annotators, questions, values = (list(codes) for codes in self._codes)
        if self.options.question is not None and not questions and not self._gold:
            raise no_such_question(self.name, self.options.question, list(self._others))
        columns = [np.frombuffer(column, dtype=np.int32) if column else np.zeros(0, np.int32) for column in self._rows]
        replaced = {} if self.options.keep_names else pseudonyms_for(annotators, self._named)
        export = Export(
            self.title,
            self.name,
            items,
            [replaced.get(name, name) for name in annotators],
            questions,
            values,
            columns[0],
            columns[1],
            columns[2],
            columns[3],
            columns[4],
            gold=tuple(self._gold),
            counts=dict(self.counts),
            notes=tuple(self._notes),
            whole_items=self._whole_items and bool(items),
            pseudonyms=replaced,
        )
        if self._guess_texts and self.options.question is None:
            export = without_free_texts(export)
        _refuse_broken_text(export)
        return export


def each_file(
    title: str, read: Callable[[ExportBuilder, Member], None], *, named: bool = False, guess_texts: bool = False
) -> Callable[[Content, ReadOptions], Export]:
    """Return the `read` of a format whose files are read one by one; the arguments are those of `ExportBuilder`."""

    def read_all(content: Content, options: ReadOptions) -> Export:
        builder = ExportBuilder(title, content.name, options, named=named, guess_texts=guess_texts)
        for member in content.members:
            read(builder, member)
        return builder.finish()

    return read_all


def _refuse_broken_text(export: Export) -> None:
    """Raise where a text that is used was not UTF-8 in the file, or is half of a character in its JSON."""
    gold = [text for label in export.gold for text in (label.item, label.question, label.value)]
    for texts in (export.items, export.annotators, export.questions, export.values, gold):
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            bad = next(text for text in texts if not text.isascii() and text.encode("utf-8", "ignore").decode() != text)
            raise InputError(
                f"{export.name}: {printable(bad, 80)!r} is not UTF-8 text; save the file as UTF-8"
            ) from None


def pseudonyms_for(names: Iterable[str], named: bool) -> Mapping[str, str]:
    """Return a pseudonym for each e-mail address, or for every name where annotators go by names.

    The same name has the same pseudonym in every file: the first digits of its SHA-256 digest.

    >>> pseudonyms_for(["ann@example.org", "17"], named=False)
    {'ann@example.org': 'annotator_...'}
    """
    chosen = [name for name in names if _is_personal(name, named)]
    digests = {name: sha256(name.encode("utf-8", "surrogatepass")).hexdigest() for name in chosen}
    shared = {start for start, count in Counter(digest[:8] for digest in digests.values()).items() if count > 1}
    return {name: PREFIX + digest[: 16 if digest[:8] in shared else 8] for name, digest in digests.items()}


def _is_personal(name: str, named: bool) -> bool:
    if "@" in name.strip("@"):  # a mail address
        return True
    return named and name != NAMELESS and not name.isdigit() and not name.startswith(PREFIX)
