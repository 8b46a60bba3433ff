"""JSON read value by value: an array, JSON lines, or one object, without holding the whole text.

Memory stays at the size of the largest value. Bytes that are not UTF-8 become lone surrogates, which are refused
where such a text is used, and harmless in fields that nobody reads.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from softgold.errors import InputError
from softgold.readers.base import printable
from softgold.readers.contents import Member

CHUNK_BYTES = 1 << 20
SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()
# A text that ends too early is reported this close to its end, unless it ends within a string.
TRUNCATED_WITHIN = 16


def looks_like_json(head: bytes) -> bool:
    """Say whether bytes begin like an object or an array, not like a table."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    return bool(re.match(rb'\{\s*["}]|\{\s*$|\[\s*[\[{"\]\d-]|\[\s*$|\[\s*(?:null|true|false)', text))


class JsonValues:
    """The values of a file: elements of its one array, or the values that follow one another.

    Attributes:
        is_array: The file is one array.
    """

    def __init__(self, member: Member, stream: IO[bytes]) -> None:
        self._name = member.display
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
        self._text, self._at, self._lines = "", 0, 0
        self._ended = False
        self._chunk = CHUNK_BYTES
        self._skip_space()
        self.is_array = self._text.startswith("[", self._at)

    def _fill(self) -> None:
        """Drop what was read, and take the next piece of the file."""
        self._lines += self._text.count("\n", 0, self._at)
        data = self._stream.read(self._chunk)
        self._ended = not data
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        self._at = 0

    def _skip_space(self) -> None:
        while True:
            match = SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return
            self._fill()

    def __iter__(self) -> Iterator[Any]:
        with self._stream:
            if self.is_array:
                yield from self._elements()
                self._skip_space()
                if self._at < len(self._text):
                    raise self._error("there is more text after the array", self._at)
            else:
                while self._at < len(self._text):
                    yield self._value()
                    self._skip_space()

    def _elements(self) -> Iterator[Any]:
        self._at += 1
        self._skip_space()
        if self._text.startswith("]", self._at):
            self._at += 1
            return
        while True:
            yield self._value()
            self._skip_space()
            mark = self._text[self._at : self._at + 1]
            if mark not in {",", "]"}:
                raise self._error("the array does not end" if not mark else "a comma is missing", self._at)
            self._at += 1
            if mark == "]":
                return
            self._skip_space()

    def _value(self) -> Any:
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or not self._may_be_cut(error):
                    raise self._error(error.msg, error.pos) from None
            except (ValueError, RecursionError) as error:
                reason = "a number has too many digits" if isinstance(error, ValueError) else "it is nested too deeply"
                raise self._error(reason, self._at) from None
            else:
                if end < len(self._text) or self._ended or isinstance(value, dict | list | str):
                    self._at = end
                    self._chunk = CHUNK_BYTES
                    return value
            self._fill()
            self._chunk *= 2  # a long value is parsed again only a few times

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - TRUNCATED_WITHIN

    def _error(self, reason: str, position: int) -> InputError:
        line = self._lines + self._text.count("\n", 0, position) + 1
        return InputError(f"{self._name}, line {line}: not valid JSON: {printable(reason)}")


def open_json(member: Member) -> JsonValues:
    """Open a file of JSON; iterate over the result once."""
    head = member.head
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{member.display} is UTF-16 text; save it as UTF-8")
    return JsonValues(member, member.open())


def parse_json(text: str) -> Any:
    """Return the value of JSON inside a cell, or None where it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
