"""The documentation site: it builds without a warning and without network, and everything public is in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import softgold
import softgold.metrics
from softgold.cli.app import COMMANDS, load_command

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """Build the site from a copy of its sources; a proxy that does not exist keeps it from the network."""
    for name in ("docs", "notebooks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build", "api", "gallery"))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [*command, str(folder / "docs"), str(folder / "html")],
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.mark.slow
def test_the_site_builds_and_is_complete(tmp_path: Path) -> None:
    site = build(tmp_path)  # once for all checks: it takes seconds
    check_links_and_anchors(site)
    check_that_nothing_is_loaded_from_elsewhere(site)
    check_public_names(site)
    check_commands_and_options(site)
    check_gallery(site)


class Page(HTMLParser):
    """Ids and addresses of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the tag is called and where it leads."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        self.links += [values["href"]] if tag == "a" and "href" in values else []
        self.sources += [values["src"]] if "src" in values else []
        self.sources += [values["href"]] if tag == "link" and "href" in values else []


def local(address: str) -> bool:
    """Say whether an address is one of the site."""
    return not re.match(r"[a-z]+:|//", address)


def check_links_and_anchors(site: Path) -> None:
    """Every link of the site leads to a page and a place that exist."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in filter(local, page.links):
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.exists(), f"{path.name}: {link}"
            assert not anchor or target not in pages or anchor in pages[target].ids, f"{path.name}: {link}"


def check_that_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Scripts, styles and pictures are files of the site."""
    for path in site.rglob("*.html"):
        page = Page(path)
        assert [source for source in page.sources if not local(source) and not source.startswith("data:")] == []
        files = [
            path.parent / unquote(source.partition("?")[0].partition("#")[0])
            for source in page.sources
            if local(source)
        ]
        assert [str(file) for file in files if not file.exists()] == []


def check_public_names(site: Path) -> None:
    """The reference has everything that `import softgold` offers, and the metrics."""
    ids = set().union(*(Page(path).ids for path in (site / "api").glob("*.html")))
    names = {f"softgold.{name}" for name in softgold.__all__} - {"softgold.errors", "softgold.plot"}
    for module in (softgold.errors, softgold.plot):
        names |= {f"{module.__name__}.{name}" for name in module.__all__}
    metrics = [name for name in softgold.metrics.__all__ if callable(getattr(softgold.metrics, name))]
    names |= {f"softgold.metrics.{name}" for name in metrics}
    assert sorted(names - ids) == []


def check_commands_and_options(site: Path) -> None:
    """The page on the command line has every command and every option."""
    text = (site / "cli.html").read_text(encoding="utf-8")
    page = Page(site / "cli.html")
    for name in COMMANDS:
        assert f"softgold-{name}" in page.ids
        command = load_command(name)
        for part in getattr(command, "commands", {name: command}).values():
            options = [max(parameter.opts, key=len) for parameter in part.params]
            assert [option for option in options if option.startswith("--") and option not in text] == []


def check_gallery(site: Path) -> None:
    """The gallery has every notebook, with its pictures."""
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert notebooks
    for notebook in notebooks:
        page = site / "gallery" / f"{notebook.stem}.html"
        pictures = notebook.read_text(encoding="utf-8").count('"image/png"')
        assert page.read_text(encoding="utf-8").count('<img alt="figure') == pictures
