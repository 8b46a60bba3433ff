"""The public surface: listed once, documented, imported lazily."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import softgold

ROOT = Path(__file__).parents[1]


def test_names_are_listed_once() -> None:
    assert len(softgold.__all__) == len(set(softgold.__all__))  # their order is the linter's


def test_dir_shows_the_public_names_only() -> None:
    assert dir(softgold) == sorted([*softgold.__all__, "__version__"])


def undocumented(thing: object) -> list[str]:
    """Return the names of a function, or of a class and its public methods, that have no docstring of their own."""
    own = vars(thing) if inspect.isclass(thing) else {}
    parts = {getattr(thing, "__name__", ""): thing}
    parts |= {name: getattr(part, "__func__", part) for name, part in own.items() if not name.startswith("_")}
    documentable = {name: part for name, part in parts.items() if callable(part) or isinstance(part, property)}
    return [name for name, part in documentable.items() if _is_missing(name, part)]


def _is_missing(name: str, part: object) -> bool:
    automatic = f"{name}("  # a dataclass without a docstring gets its signature as one
    text = getattr(part, "__doc__", None) or automatic
    return text.startswith(automatic)


@pytest.mark.parametrize("name", softgold.__all__)
def test_every_name_is_documented(name: str) -> None:
    assert undocumented(getattr(softgold, name)) == []


def examples(thing: object) -> list[str]:
    """Return the docstrings with an example: of a function, class or module, and of the methods of a class."""
    own = vars(thing).values() if inspect.isclass(thing) else []
    texts = [getattr(getattr(part, "__func__", part), "__doc__", None) for part in (thing, *own)]
    return [text for text in texts if text and ">>>" in text]


def _names(module: str) -> list[str]:
    """Return what a public module offers beside constants."""
    found = import_module(f"softgold.{module}")
    return [name for name in found.__all__ if callable(getattr(found, name))]


NAMES = [
    *softgold.__all__,
    *(f"{part}.{name}" for part in ("errors", "metrics", "agreement", "plot") for name in _names(part)),
    *("experts.Calibration", "experts.ExpertSample", "evaluation.Evaluation", "evaluation.evaluate_classes"),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_reference_has_an_example(name: str) -> None:
    module, _, attribute = f"softgold.{name}".rpartition(".")
    assert examples(getattr(import_module(module), attribute))  # the examples themselves run as doctests


def test_the_check_sees_what_has_no_docstring() -> None:
    @dataclasses.dataclass
    class Bare:
        number: int = 0

        def method(self) -> None: ...

        @property
        def half(self) -> float:
            """Half of the number."""
            return self.number / 2

    assert undocumented(Bare) == ["Bare", "method"]


def docstrings(path: Path) -> dict[str, str | None]:
    """Return the docstrings of a file's public classes and functions, and of the public methods of its classes."""
    found: dict[str, str | None] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[prefix + node.name] = ast.get_docstring(node)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")

    tree = ast.parse(path.read_text(encoding="utf-8"))
    if tree.body:
        found["module"] = ast.get_docstring(tree)
    visit(tree.body, "")
    return found


SOURCES = sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=[path.relative_to(ROOT / "src").as_posix() for path in SOURCES])
def test_every_public_part_of_a_module_is_documented(path: Path) -> None:
    assert [name for name, text in docstrings(path).items() if not text] == []


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


def test_python_m_softgold_is_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "softgold", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"softgold {softgold.__version__}\n", "")
    wrong = subprocess.run([sys.executable, "-m", "softgold", "describ"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")


@pytest.mark.slow
def test_everything_but_svi_works_without_torch(tmp_path: Path) -> None:
    script = """
import sys
from importlib.machinery import PathFinder
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        return None if name.partition(".")[0] in {"torch", "pyro", "matplotlib"} else super().find_spec(name, *rest)
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
from softgold.cli import main
samples, run = sys.argv[1:]
commands = (
    f"fit {samples}/votes.csv --engine coordinate -o {run}",
    f"predict {run} {samples}/votes.csv -o {run}/predicted.csv",
    f"calibrate {run} --experts {samples}/experts.csv --n-bootstrap 50",
    f"evaluate {run} --scores {samples}/scores.csv --n-bootstrap 50 --n-vote-bootstrap 40",
    f"report {run}",
)
for command in commands:
    assert main([*command.split(), "--quiet"]) == 0, command
assert main(["fit", f"{samples}/votes.csv", "--engine", "svi", "-o", f"{run}-svi"]) == 2
"""
    command = [sys.executable, "-c", script, str(ROOT / "data_samples"), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "error: engine 'svi' needs torch and pyro" in done.stderr
    assert "install torch and pyro-ppl" in done.stderr


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
