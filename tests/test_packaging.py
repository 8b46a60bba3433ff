"""What is shipped: the wheel, completion in the shell, the citation, the conda recipe, and floors that were tried."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import softgold

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[a-z,]+\])?>=([0-9.]+)")


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def floors(requirements: list[str]) -> dict[str, str]:
    """Return the floor of each package; every requirement has one."""
    matches = [REQUIREMENT.fullmatch(text) for text in requirements if not text.startswith("softgold[")]
    assert None not in matches, f"a requirement has no floor: {requirements}"
    return {match[1].lower(): match[2] for match in matches if match}


def every_floor() -> dict[str, str]:
    extras = project()["optional-dependencies"].values()
    return floors([*project()["dependencies"], *(name for names in extras for name in names)])


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").split()
    return {key.lower().replace("_", "-"): version for key, version in (line.split("==") for line in lines)}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


# torch is tried in one version only: others bring gigabytes of libraries. The tools below decide no result.
NOT_TRIED_AT_THEIR_FLOOR = {"torch"}
TOOLS = {"ruff", "mypy", "pandas-stubs", "scipy-stubs", "hatchling", "build", "twine", "arviz", "pyyaml"}


def test_the_lowest_versions_are_the_floors() -> None:
    lowest = pins("constraints-lowest.txt")
    docs = set(floors(project()["optional-dependencies"].get("docs", [])))
    for name, floor in every_floor().items():
        if name not in TOOLS | NOT_TRIED_AT_THEIR_FLOOR | docs:
            padded = numbers(floor) + (0,) * (len(numbers(lowest[name])) - len(numbers(floor)))
            assert numbers(lowest[name]) == padded, f"{name}: floor {floor}, tried {lowest[name]}"


def test_the_newest_versions_are_not_below_the_floors() -> None:
    newest = pins("constraints.txt")
    for name, floor in every_floor().items():
        assert numbers(newest[name]) >= numbers(floor), name


def test_the_citation_has_this_version_and_every_reference_has_authors() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project()["version"] == softgold.__version__
    assert citation["license"] == project()["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert all(
        {"type", "title", "authors"} <= set(reference)
        and all({"family-names", "given-names"} == set(person) for person in reference["authors"])
        for reference in citation["references"]
    )


def test_the_changelog_begins_with_this_version() -> None:
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", page, flags=re.MULTILINE)[0] in (project()["version"], "Unreleased")
    assert f"## {project()['version']}" in page


CONDA_NAMES = {"torch": "pytorch"}


def test_the_conda_recipe_agrees_with_the_project() -> None:
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == project()["version"]
    expected = {CONDA_NAMES.get(name, name): floor for name, floor in floors(project()["dependencies"]).items()}
    expected["python"] = project()["requires-python"].removeprefix(">=")
    assert dict(entry.split(" >=") for entry in recipe["requirements"]["run"]) == expected
    entry = recipe["build"]["python"]["entry_points"]
    assert entry == [f"{name} = {target}" for name, target in project()["scripts"].items()]
    assert recipe["about"]["license"] == project()["license"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source archive, built without the network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_wheel_has_what_is_needed_and_no_tests(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    assert wheel.name == f"softgold-{softgold.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/", maxsplit=1)[0] for name in names}
    assert tops == {"softgold", f"softgold-{softgold.__version__}.dist-info"}
    assert {"softgold/py.typed", "softgold/plot/__init__.py", "softgold/data_samples/votes.csv"} <= set(names)
    assert not [name for name in names if "test" in name.lower() or "__pycache__" in name]
    missing = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")} - set(names)
    assert not missing


@pytest.mark.slow
def test_twine_finds_nothing_wrong(built: Path) -> None:
    files = [str(path) for path in sorted(built.iterdir())]
    assert len(files) == 2
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def in_bash(command: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run softgold from bash, as a person would; Typer looks for the shell among the parents."""
    run = f"{sys.executable} -c 'import sys; from softgold.cli import main; sys.exit(main())' {command}"
    environment = {**os.environ, "HOME": str(home), "SHELL": "/bin/bash", **variables}
    return subprocess.run(["bash", "-c", f"{run}; exit $?"], env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_completion_is_installed_for_bash(tmp_path: Path) -> None:
    done = in_bash("--install-completion", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    script = tmp_path / ".bash_completions" / "softgold.sh"
    assert str(script) in (tmp_path / ".bashrc").read_text()
    assert "complete -o default -F _softgold_completion softgold" in script.read_text()
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [("softgold cal", ["calibrate"]), ("softgold calibrate --ru", ["--rule"]), ("softgold fit --eng", ["--engine"])],
)
def test_commands_and_options_are_completed(tmp_path: Path, words: str, expected: list[str]) -> None:
    place = str(len(words.split()) - 1)
    done = in_bash("", tmp_path, COMP_WORDS=words, COMP_CWORD=place, _SOFTGOLD_COMPLETE="complete_bash")
    assert (done.returncode, done.stdout.split()) == (0, expected), done.stderr
