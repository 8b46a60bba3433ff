"""The page on exports: what its commands print is what they do print."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softgold.readers import FORMAT_NAMES

PAGE = (Path(__file__).parents[3] / "docs/exports.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def test_the_commands_print_what_the_page_shows(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(__file__).parent / "samples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == 5
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            command, *arguments = shlex.split(line.removesuffix(" > /dev/null"))
            assert command == "softgold"
            answer = cli(*arguments)
            assert (answer.code, answer.err) == (0, shown.rstrip("\n") + "\n" if shown.strip() else "")


def test_every_format_has_a_place_on_the_page() -> None:
    for name in FORMAT_NAMES:
        assert f"`{name}`" in PAGE
