"""Pages of the site that are made from the code and the notebooks: command line, API reference, gallery."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import softgold
from softgold.cli.app import COMMANDS, load_command

ROOT = Path(__file__).parents[1]

# Packages of the reference in reading order: title, and public names beside those of `softgold.__all__`.
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "readers": ("Reading files and frames", ()),
    "tables": ("Tables", ()),
    "models": ("Models and fits", ()),
    "experts": ("Experts and calibration", ("softgold.experts.Calibration", "softgold.experts.ExpertSample")),
    "evaluation": ("Evaluation", ("softgold.evaluation.Evaluation", "softgold.evaluation.evaluate_classes")),
    "planning": ("Campaigns", ()),
    "runs": ("Run directories", ()),
    "simulation": ("Simulated studies", ()),
    "errors": ("Errors and warnings", ()),
}
# Modules whose `__all__` is documented as a whole.
MODULES = {"metrics": "Metrics", "agreement": "Agreement of raters", "plot": "Plots"}


def write(docs: Path) -> None:
    """Write the reference and the gallery below docs/, where the toctrees look for them."""
    _replace(docs / "api", dict(api_pages()))
    write_gallery(docs / "gallery")


def _replace(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:  # an unchanged page is not read again
            path.write_bytes(content)


# --- command line


def command_reference() -> str:
    """Return one section per command: what it does, usage, arguments and options, as `--help` says them."""
    return "\n".join(text for name in COMMANDS for text in _sections(f"softgold {name}", load_command(name), "##"))


def _sections(name: str, command: Any, level: str) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield f"{level} {name}\n\n{_prose(command.help)}\n\n```text\n{usage}\n```\n\n{_options(command, context)}"
    for child, part in getattr(command, "commands", {}).items():
        yield from _sections(f"{name} {child}", part, level + "#")


def _prose(text: str | None) -> str:
    return _plain(inspect.cleandoc(text or "").split("\f")[0])


def _options(command: Any, context: Any) -> str:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(record[0].strip(), " ".join(record[1].split())) for record in records if record]
    return "".join(f"`{name}`\n: {_plain(text)}\n\n" for name, text in rows if name != "--help")


def _plain(text: str) -> str:
    """Escape what Markdown would read as markup; file names and column names keep their underscores."""
    for mark in "\\*_<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text


# --- API reference


def api_pages() -> Iterator[tuple[str, bytes]]:
    """Yield the name and text of each page: one per package that public names come from."""
    groups = {key: (title, [*_public_names(key), *extra]) for key, (title, extra) in GROUPS.items()}
    for key, title in MODULES.items():
        if find_spec(f"softgold.{key}"):
            module = import_module(f"softgold.{key}")
            names = [name for name in module.__all__ if callable(getattr(module, name))]
            groups[key] = (title, [f"softgold.{key}.{name}" for name in names])
    for number, (key, (title, names)) in enumerate(groups.items(), 1):
        yield f"{number:02d}_{key}.md", _api_page(title, names).encode()


def _public_names(package: str) -> list[str]:
    """Return the public names of softgold that a package defines."""
    if package == "errors":
        return [f"softgold.errors.{name}" for name in softgold.errors.__all__]
    homes = {name: getattr(getattr(softgold, name), "__module__", "") for name in softgold.__all__}
    return [f"softgold.{name}" for name, home in homes.items() if home.split(".")[1:2] == [package]]


def _api_page(title: str, names: Iterable[str]) -> str:
    listed = sorted(names, key=lambda name: name.rpartition(".")[2][0].isupper())  # functions first, then classes
    table = "\n".join(f"   ~{name}" for name in listed)  # the last part of the name alone
    parts = "\n".join(_directive(name) for name in listed)
    return f"# {title}\n\n```{{eval-rst}}\n.. autosummary::\n   :nosignatures:\n\n{table}\n\n{parts}```\n"


def _directive(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    thing = getattr(import_module(module), attribute)
    return f".. autoclass:: {name}\n   :members:\n" if inspect.isclass(thing) else f".. autofunction:: {name}\n"


# --- gallery


def write_gallery(folder: Path) -> None:
    """Write a page per notebook, and its pictures."""
    _replace(folder, {name: content for notebook in notebooks() for name, content in notebook_files(notebook).items()})


def notebooks() -> list[Path]:
    """Return the notebooks, in order."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def gallery_cards() -> str:
    """Return a section per notebook: its title with a link, what it begins with, and its first picture."""
    cards = []
    for path in notebooks():
        files = notebook_files(path)
        heading, paragraph = files[f"{path.stem}.md"].decode().split("\n\n")[:2]
        picture = next((f"![{path.stem}](gallery/{name})" for name in files if name.endswith(".png")), "")
        cards.append(f"## [{heading.lstrip('# ')}](gallery/{path.stem}.md)\n\n{paragraph}\n\n{picture}\n")
    return "\n".join(cards)


def notebook_files(path: Path) -> dict[str, bytes]:
    """Return the page of a notebook, as it was stored with its outputs, and the pictures on it."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    pictures: dict[str, bytes] = {}
    parts = [part for at, cell in enumerate(cells) for part in _cell(cell, f"{path.stem}_{at}", pictures)]
    page = "\n\n".join([*parts, f"*Notebook: `notebooks/{path.name}`*\n"])
    return {f"{path.stem}.md": page.encode(), **pictures}


def _cell(cell: dict[str, Any], stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        yield source
        return
    yield f"```python\n{source}\n```"
    for number, output in enumerate(cell["outputs"]):
        data = output.get("data", {})
        if "image/png" in data:
            name = f"{stem}_{number}.png"
            pictures[name] = base64.b64decode("".join(data["image/png"]))
            yield f"![figure of the cell above]({name})"
        elif "text/html" in data:
            yield f"````{{raw}} html\n<div class='frame'>{''.join(data['text/html'])}</div>\n````"
        else:
            text = "".join(output.get("text", data.get("text/plain", "")))
            yield f"```text\n{text.rstrip()}\n```"
