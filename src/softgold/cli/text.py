"""Text for a terminal: control characters are escaped, long lines shortened."""

from __future__ import annotations

import re

LONGEST_LINE = 1000
KEPT_END = 250

# Control characters (escape, bell, carriage return, C1), marks that reorder or hide text, and lone surrogates.
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    r"""Return the text with the characters escaped that could control a terminal; line ends and tabs stay.

    >>> printable("\x1b[31mred\u202e")
    '\\u001b[31mred\\u202e'
    """
    return STEERING.sub(_escaped, text)


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    r"""Return the text as one line that is not too long: the middle of a longer one is left out.

    >>> one_line("a\nb")
    'a\\nb'
    >>> len(one_line("x" * 5000)) <= LONGEST_LINE
    True
    """
    line = printable(text).replace("\n", "\\n").replace("\t", " ")
    if len(line) <= longest:
        return line
    gap = f" ... {len(line):,} characters in all ... "
    end = min(KEPT_END, longest // 4)
    return f"{line[: longest - end - len(gap)]}{gap}{line[-end:]}"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
