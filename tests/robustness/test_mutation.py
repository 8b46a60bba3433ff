"""Damaged inputs and damaged runs: a result or a sentence, in bounded time and memory, and nothing half-written."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robustness.conftest import Server
from robustness.study import CASES, COMMANDS, SEED, snapshot, strays

LIMITS = {"seconds": 60, "memory": 2 * 2**30}
EXITS = {0, 2, 130, 141, 143}
TARGETS = [(name, file) for name, command in COMMANDS.items() for file in command.inputs]

NUMBERS = [b"-1", b"0", b"1e308", b"-1e-320", b"nan", b"NaN", b"inf", b"9" * 400, b"9007199254740993", b"1e20", b"0x1f"]
TEXTS = [
    b"",
    b'"',
    b"''",
    b"\x00",
    b"\xff\xfe",
    b"\\ud800",
    "\u202e".encode(),
    b"\x1b[2J",
    b"=1+1",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"[[]]",
    b"\r",
    b"\n",
    b",",
    b";",
    b"\t",
    b"x" * 20_000,
    b"[" * 20_000,
]

pytestmark = pytest.mark.slow


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """Return the bytes with one to four changes: bits, cuts, repeats, and tokens in place of numbers or of texts."""
    for _ in range(random.integers(1, 5)):
        at, end = sorted(random.integers(0, len(data) + 1, 2).tolist())
        kind = random.integers(0, 7)
        if kind == 0 and data:
            place = int(random.integers(0, len(data)))
            data = data[:place] + bytes([data[place] ^ (1 << int(random.integers(0, 8)))]) + data[place + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[at:end][:200] * 3 + data[end:]
        elif kind == 3:
            data = data[:at] + data[end:]
        else:
            data = _replaced_token(data, random, NUMBERS + TEXTS)
    return data


def _replaced_token(data: bytes, random: np.random.Generator, tokens: list[bytes]) -> bytes:
    """Return the bytes with one cell or value, as commas, quotes, colons and line ends bound it, replaced."""
    marks = [place for place, byte in enumerate(data) if byte in b',;:\n"[]{} ']
    token = tokens[int(random.integers(0, len(tokens)))]
    if len(marks) < 2:
        return data + token
    place = int(random.integers(0, len(marks) - 1))
    return data[: marks[place] + 1] + token + data[marks[place + 1] :]


@pytest.mark.parametrize(("name", "file"), TARGETS, ids=[f"{name}: {file}" for name, file in TARGETS])
def test_damaged_files(
    server: Server,
    bases: Callable[[str], Path],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    name: str,
    file: str,
) -> None:
    command, base = COMMANDS[name], bases(name)
    random = np.random.default_rng([SEED, TARGETS.index((name, file))])
    original = (base / file).read_bytes()
    cases = math.ceil(command.cases(CASES) / 4)
    record_property("cases", cases)
    for case in range(cases):
        folder = Path(shutil.copytree(base, tmp_path / "case"))
        (folder / file).write_bytes(mutated(original, random))
        before = snapshot(folder)
        ended = server.run(*command.arguments.split(), folder=folder, preload=command.preload, **LIMITS)
        where = f"{name}, {file}, seed {SEED}, case {case}: {ended.err[-2000:]}"
        assert not ended.timed_out, where
        assert ended.code in EXITS, where
        assert "Traceback" not in ended.err, where
        assert all(len(line) <= 1000 for line in ended.err.splitlines()), where
        assert not set(ended.err) & set("\x00\x07\x1b\r\u202e"), where
        if ended.code == 2:
            assert snapshot(folder) == before, where
            assert strays(folder) == [], where
        shutil.rmtree(folder)
