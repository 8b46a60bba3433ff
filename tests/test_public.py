"""The public surface is small, sorted, lazy, and there."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import softgold

ROOT = Path(__file__).parents[1]


def test_names_are_listed_once() -> None:
    assert len(softgold.__all__) == len(set(softgold.__all__))  # their order is the linter's


@pytest.mark.parametrize("name", softgold.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    thing = getattr(softgold, name)
    assert thing.__doc__
    assert name in dir(softgold)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(softgold.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    names = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(names) == sorted(softgold.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'softgold' has no attribute 'magic'"):
        _ = softgold.magic


def test_the_errors_are_exported() -> None:
    exported = [getattr(softgold.errors, name) for name in softgold.errors.__all__]
    kinds = [kind for kind in exported if isinstance(kind, type)]
    assert all(issubclass(kind, softgold.errors.SoftgoldError | softgold.errors.SoftgoldWarning) for kind in kinds)


def test_importing_softgold_imports_nothing_heavy() -> None:
    script = (
        "import sys, softgold; print(sorted({'numpy', 'pandas', 'torch', 'matplotlib', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == softgold.__version__


def test_the_constraints_cover_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()}
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    for requirement in [*project["dependencies"], *extras]:
        name = requirement.split(">=")[0].split("[")[0].lower()
        assert name in pinned or name == "softgold", f"{name} is not in constraints.txt"
