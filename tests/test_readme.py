"""The README's first screen: what it promises is there, and as short as promised."""

from __future__ import annotations

import re

import pytest

from fixtures.pages import ROOT, blocks

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_three_commands_and_four_lines_of_python() -> None:
    shell, python = (next(block for block in blocks(README) if block.language == name) for name in ("sh", "python"))
    assert len(shell.commands()) == 3
    assert len(list(filter(None, python.text.splitlines()))) == 4


def test_which_model_when_has_five_rows() -> None:
    table = re.search(r"^\| you have .*\n\|---.*\n((?:\|.*\n)+)", TEXT, flags=re.MULTILINE)
    assert table is not None
    assert len(table[1].splitlines()) == 5


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^\$ make (\w+)", TEXT, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in [*targets, "docs"]:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("figures", "script"),
    [
        (("0.299", "0.408", "0.635", "0.875", "0.846"), "real.py"),
        (("0.288", "0.274", "0.883", "0.888"), "experts.py"),
        (("58 %", "68 %"), "next.py"),
        (("0.861", "0.824"), "real.py"),
    ],
)
def test_the_figures_are_those_of_the_measured_tables(figures: tuple[str, ...], script: str) -> None:
    page = "campaigns.md" if script == "next.py" else "measured.md"
    tables = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert (ROOT / "scripts" / "bench" / script).is_file()
    assert f"scripts/bench/{script}" in TEXT
    assert f"scripts/bench/{script}" in tables
    for figure in figures:
        assert figure in TEXT
        share = f"0.{figure.removesuffix(' %')}" if figure.endswith("%") else figure
        assert share in tables
