"""The notebooks run from a clean kernel, say what the script that makes them says, and have their outputs in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NAMES = (
    "01_fit_votes",
    "02_calibrate_with_experts",
    "03_evaluate_models",
    "04_plan_a_campaign",
    "05_several_questions",
)


@pytest.fixture(scope="module")
def script(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("make_notebooks")


def stored(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Return what kind of output each cell has."""
    return [[output.output_type for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_from_a_clean_kernel(name: str, script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning")
    at_once = partial(script.NotebookClient, shutdown_kernel="immediate")  # a kernel that is asked takes half a second
    monkeypatch.setattr(script, "NotebookClient", at_once)
    notebook = stored(name)
    nbformat.validate(notebook)
    expected = kinds(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    assert kinds(script.execute(notebook, FOLDER)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_script_makes_with_outputs(name: str, script: ModuleType) -> None:
    notebook, made = stored(name), script.build(script.NOTEBOOKS[name])
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in made.cells]
    assert all(kinds(notebook)[1:])
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert '"output_type": "error"' not in text
    assert not re.search(r"/tmp/|/home/|/root/", text)
    assert len(text) < 200_000


def test_there_are_no_others() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
