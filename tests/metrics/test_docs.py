"""The page on metrics: its examples run, and it speaks of every public function."""

import doctest
from pathlib import Path

import softgold.metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_examples_of_the_page_run():
    failures, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (failures, tried > 5) == (0, True)


def test_page_speaks_of_every_function():
    text = PAGE.read_text(encoding="utf-8")
    names = [*softgold.metrics.__all__]
    assert [name for name in names if name[0].islower() and f"`{name}`" not in text and f"`{name}(" not in text] == []
