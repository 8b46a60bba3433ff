"""The page on exports; its commands run in tests/test_pages.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgold.readers import FORMAT_NAMES

PAGE = (Path(__file__).parents[3] / "docs/exports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_every_format_has_a_place_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE
