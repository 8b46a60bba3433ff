"""Imports follow the data: a module imports only what comes before it. CONTRIBUTING.md maps every package."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import softgold
from softgold.models.base import MODELS

ROOT = Path(softgold.__file__).parent

# A unit is a module or a package directly below softgold. It may import the units of earlier lines only, wherever
# in the file the import stands. Units on one line do not know each other.
LAYERS = (
    ("errors",),
    ("checks",),
    ("output",),
    ("tables",),
    ("readers",),
    ("simulation",),
    ("metrics",),
    ("agreement",),
    ("models",),
    ("scale",),
    ("dask",),
    ("runs",),
    ("experts",),
    ("planning",),
    ("evaluation",),
    ("imaging",),
    ("plot",),
    ("report",),
    ("cli",),
    ("__main__",),
)
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}

# Metrics judge models and labels, and must not know where these came from.
ONLY = {"metrics": {"checks", "errors"}, "errors": set()}

# From the root of the package, which knows every module, nothing but the version may be taken.
ROOT_NAMES = {"__version__"}


def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(path: Path) -> set[str]:
    """Return the modules of softgold that a file imports at any depth, for types or deferred into a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            module = node.module or ""
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                names.add(whole if whole in MODULES or module == "softgold" else module)
    return {name for name in names if name.split(".")[0] == "softgold"}


def unit(module: str) -> str:
    """Return the part of softgold that a module belongs to: `readers` for softgold.readers.text."""
    return module.removeprefix("softgold").lstrip(".").split(".")[0]


PARTS = [name for name in MODULES if name != "softgold"]


@pytest.mark.parametrize("name", PARTS)
def test_a_module_imports_only_what_is_before_it(name: str) -> None:
    here = unit(name)
    assert here in LEVEL, f"softgold.{here} has no place in LAYERS"
    for target in imported(MODULES[name]):
        if target.removeprefix("softgold.") in ROOT_NAMES:
            continue
        there = unit(target)
        assert there == here or LEVEL[there] < LEVEL[here], f"{name} imports {target}, which comes after it"
        assert there == here or there in ONLY.get(here, {there}), f"{name} imports {target}"


# Boxes, masks and near duplicates stand beside the core: these commands reach them, and nothing else does. The report
# reads the files that `convergence` writes.
IMAGING_COMMANDS = {f"softgold.cli.{name}" for name in ("convergence", "duplicates", "simulate", "uncertainty")}


def test_only_its_own_commands_import_imaging() -> None:
    importers = {name for name in PARTS if any(unit(target) == "imaging" for target in imported(MODULES[name]))}
    assert {name for name in importers if unit(name) != "imaging"} == IMAGING_COMMANDS


@pytest.mark.slow
def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {name: {target for target in imported(MODULES[name]) if target in MODULES} - {name} for name in PARTS}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


# What every model goes through knows none of them: the contract and its registry, and the runs on disk.
BLIND = ("softgold.models.base", *(name for name in MODULES if name.startswith("softgold.runs.")))
REGISTRY = {"MODELS", "DEFAULT_MODEL"}


def strings(path: Path) -> list[str]:
    """Return the texts in a file's code: not its docstrings, and not the registry of models."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {
        id(part)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign | ast.AnnAssign) and _target(node) in REGISTRY)
        for part in ast.walk(node)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in left_out)
    return [node.value for node in constants if isinstance(node.value, str)]


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


@pytest.mark.parametrize("name", BLIND)
def test_the_contract_and_the_storage_name_no_model(name: str) -> None:
    shared = {"softgold.models.base", "softgold.models.summaries"}
    concrete = {module for module in MODULES if module.startswith("softgold.models.")} - shared
    assert not imported(MODULES[name]) & concrete
    assert not set(strings(MODULES[name])) & set(MODELS)


def test_the_check_sees_names_outside_the_registry(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""About glad."""\nMODELS = {"glad": "module:GLAD"}\nif model == "glad":\n    pass\n')
    assert strings(path) == ["glad"]


def test_the_check_sees_deferred_and_type_only_imports(tmp_path: Path) -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from softgold.tables.votes import VoteTable
def late():
    import softgold.cli.app
    from softgold import errors
"""
    path = tmp_path / "module.py"
    path.write_text(source)
    assert imported(path) == {"softgold.tables.votes", "softgold.cli.app", "softgold.errors"}


def test_the_map_in_contributing_names_every_package() -> None:
    page = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    mapped = re.findall(r"^\| `([a-z_/]+)/` \|", page, flags=re.MULTILINE)
    packages = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py")} - {"."}
    assert sorted(mapped) == sorted(packages)
    assert [name for name in mapped if "/" not in name] == [name for name in LEVEL if name in packages]
