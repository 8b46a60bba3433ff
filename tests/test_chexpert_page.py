"""The script that writes docs/chexpert.md: on a made-up folder always, against the real one where it is."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "chexpert.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("make_chexpert_page")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two findings of sixty studies, eight readers, three models."""
    rng = np.random.default_rng(0)
    items = [f"patient{i}|{finding}" for finding in ("Heart", "Lung Base") for i in range(60)]
    chance = rng.beta(0.7, 0.9, len(items))
    votes = pd.DataFrame(
        [(item, f"r{r}", int(rng.random() < p)) for item, p in zip(items, chance, strict=True) for r in range(8)],
        columns=["item", "annotator", "vote"],
    )
    votes.to_csv(tmp_path / "votes_all8.csv", index=False)
    votes[votes["annotator"] < "r5"].to_csv(tmp_path / "experts.csv", index=False)
    tasks = [item.split("|")[1] for item in items]
    pd.DataFrame({"item": items, "task": tasks, "group": "g"}).to_csv(tmp_path / "items.csv", index=False)
    scores = pd.DataFrame(chance[:, None] + rng.normal(0, 0.3, (len(items), 3)), columns=["a", "b", "c"])
    scores.insert(0, "item", items)
    scores.to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


def test_the_script_writes_a_page_and_sound_figures(script: ModuleType, folder: Path) -> None:
    study = script.run_study(folder, n_bootstrap=30, n_vote_bootstrap=30)
    page, figures = script.page(study), script.figures(study)
    for finding in ("Heart", "Lung Base"):
        assert f"## {finding}\n\n![Ranks of the models on {finding}]" in page
    assert len(re.findall(r"^\| a \|", page, re.MULTILINE)) == 2
    assert set(re.findall(r"\(figures/([\w.]+)\)", page)) == set(figures)
    for text in figures.values():
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.findall(".//{http://www.w3.org/2000/svg}text")


def without_style(svg: str) -> str:
    """Return what a figure draws; its colours are those of all charts, and may change with them."""
    return re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)


def test_the_figures_of_the_page_are_there() -> None:
    for name in re.findall(r"\(figures/([\w.]+)\)", PAGE):
        assert (ROOT / "docs" / "figures" / name).is_file()


@pytest.mark.slow
def test_the_page_is_what_the_script_writes(script: ModuleType, real_data: Path) -> None:
    study = script.run_study(real_data / "chexpert_test")
    assert script.page(study) == PAGE
    for name, text in script.figures(study).items():
        kept = (ROOT / "docs" / "figures" / name).read_text(encoding="utf-8")
        assert without_style(kept) == without_style(text)
