"""README and pages: every command and every example runs, every link leads somewhere, no page is too long."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import softgold
from fixtures.pages import PAGES, ROOT, RUN, SHOWN, anchors, blocks, links, prose
from softgold.cli.app import COMMANDS, load_command

SAMPLES = ROOT / "tests" / "readers" / "exports" / "samples"
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
each_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def label_studio_export() -> list[dict[str, Any]]:
    """Return tasks as Label Studio exports them: three annotators, one yes/no question."""
    answers = {"ann": "yyyyyynnnnnn", "bob": "yyyyynnnnnny", "cat": "ynyyyynnynnn"}

    def annotation(who: int, answer: str) -> dict[str, Any]:
        choices = {"choices": ["yes" if answer == "y" else "no"]}
        part = {"from_name": "relevant", "to_name": "image", "type": "choices", "value": choices}
        return {"id": who, "completed_by": who, "was_cancelled": False, "ground_truth": False, "result": [part]}

    return [
        {
            "id": item + 1,
            "data": {"image": f"/data/{item}.png"},
            "annotations": [annotation(who, text[item]) for who, text in enumerate(answers.values(), 1)],
            "predictions": [],
        }
        for item in range(12)
    ]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the sample data, some of them in two Parquet files, the sample exports, and one of Label Studio."""
    shutil.copytree(ROOT / "data_samples", tmp_path / "data_samples")
    (tmp_path / "votes").mkdir()
    votes = pd.read_csv(ROOT / "data_samples" / "votes.csv")
    for part in range(2):
        votes[:2000][part::2].to_parquet(tmp_path / "votes" / f"{part}.parquet", index=False)
    shutil.copytree(SAMPLES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "export.json").write_text(json.dumps(label_studio_export()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(text: str, names: dict[str, object], title: str) -> None:
    """Run an example: a session with prompts is compared with what it shows."""
    if not text.startswith(">>>"):
        exec(compile(text, title, "exec"), names)
        return
    session = doctest.DocTestParser().get_doctest(text, names, title, title, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, clear_globs=False)
    names.update(session.globs)
    assert result.failed == 0, title


def run_command(line: str, shown: str, cli: Callable[..., Any]) -> None:
    """Run a command of softgold; where the page shows what it prints, compare."""
    command, *arguments = shlex.split(line)
    assert command == "softgold", line
    answer = cli(*arguments)
    assert answer.code == 0, f"{line}: {answer.err}"
    assert "error:" not in answer.err
    if shown.strip():
        assert answer.err == shown.rstrip("\n") + "\n", line


@pytest.mark.slow
@pytest.mark.usefixtures("workplace")
@each_page
def test_the_blocks_of_a_page_run_in_order(page: Path, cli: Callable[..., Any]) -> None:
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.language not in RUN or block.not_run:
            continue
        if block.language == "python":
            with warnings.catch_warnings():
                if block.needs:  # another library's warnings are its own
                    warnings.simplefilter("ignore")
                run_python(block.text, names, page.name)
        else:
            for line, shown in block.commands():
                run_command(line, shown, cli)


def test_what_is_not_run_is_said_and_rare() -> None:
    marked = [(page.name, block) for page in PAGES for block in blocks(page) if block.not_run or block.needs]
    assert [page for page, block in marked if block.not_run] == ["README.md"]  # make demo, make test
    assert {block.needs for _, block in marked if block.needs} == {"crowdkit", "cleanlab"}


@each_page
def test_every_block_is_run_or_text(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= {*RUN, *SHOWN}
    commands = re.findall(r"^(?: {4}|\t)(?:\$ |softgold |python |pip |make |>>> |import |from ).*$", prose(page), re.M)
    assert commands == []  # indented blocks are formulas


@each_page
def test_pages_are_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= 1200


@each_page
def test_names_of_softgold_exist(page: Path) -> None:
    names = set(re.findall(r"softgold\.([A-Za-z_]+)(?![\w./])", page.read_text(encoding="utf-8")))
    modules = {path.stem for path in (ROOT / "src" / "softgold").iterdir()}
    assert {name for name in names if not hasattr(softgold, name)} <= modules


def every_option() -> set[str]:
    """Return the options of all commands, and of the scripts that pages name."""
    commands = [load_command(name) for name in COMMANDS]
    parts = [part for command in commands for part in getattr(command, "commands", {"": command}).values()]
    scripts = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "scripts").rglob("*.py"))
    options = {option for part in parts for parameter in part.params for option in parameter.opts}
    return {*options, *re.findall(r'"(--[a-z-]+)"', scripts), "--help", "--version"}


def test_options_exist() -> None:
    known = every_option()
    for page in PAGES:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text(encoding="utf-8")))
        assert named - known == set(), page.name


EVERYWHERE = sorted({*PAGES, *ROOT.glob("*.md"), *(ROOT / "data_samples").rglob("*.md")})


@pytest.mark.parametrize("page", EVERYWHERE, ids=[path.relative_to(ROOT).as_posix() for path in EVERYWHERE])
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_table_of_contents() -> None:
    index = ROOT / "docs" / "index.md"
    trees = [block.text for block in blocks(index) if block.language == "{toctree}"]
    listed = {re.sub(r".*<(.+)>", r"\1", line) for text in trees for line in text.splitlines()}
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed
