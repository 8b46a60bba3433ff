"""One HTML page that needs no network and no script to be read."""

from __future__ import annotations

from base64 import b64encode
from functools import reduce
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from softgold import __version__
from softgold.errors import InputError
from softgold.output import PathLike, atomic_file, reading
from softgold.report.convergence.summary import ConvergenceSummary, read_convergence
from softgold.report.pages import Page, convergence_page, join_pages, run_page, study_page
from softgold.report.svg import TEMPLATES, template_text
from softgold.runs import Run, Study, is_study, open_run, open_study, report_path, soft_labels_path


def write_report(
    run: PathLike, output: PathLike | None = None, *, title: str | None = None, force: bool = False
) -> Path:
    """Write the report of a run directory, or of a folder of `softgold convergence`, as one HTML file.

    Args:
        run: The directory; its files decide which sections there are, and it may be both.
        output: Where to write; `report.html` in the directory if left out.
        title: Heading of the report; the name of the directory if left out.
        force: Replace an existing file.

    Returns:
        The path of the report.
    """
    folder = Path(run)
    target = report_path(folder) if output is None else Path(output)
    with reading(folder):
        page = _render_folder(folder, title)
    with atomic_file(target, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="backslashreplace")  # a name may be no UTF-8
    return target


def _render_folder(folder: Path, title: str | None) -> str:
    convergence = read_convergence(folder)
    if convergence is not None and not soft_labels_path(folder).is_file():
        return render_report(convergence, title=title)
    opened = open_study(folder) if is_study(folder) else open_run(folder)
    return render_report(opened, convergence, title=title)


def render_report(*values: Run | Study | ConvergenceSummary | None, title: str | None = None) -> str:
    """Return the page on a run, a study or label convergence, or on two of them together."""
    pages = [report_page(value) for value in values if value is not None]
    if not pages:
        raise InputError("a report needs a run, or label convergence")
    return render_page(reduce(join_pages, pages), title=title)


def report_page(value: Run | Study | ConvergenceSummary) -> Page:
    """Return the contents of the page on a value."""
    if isinstance(value, Study):
        return study_page(value)
    return run_page(value) if isinstance(value, Run) else convergence_page(value)


def render_page(page: Page, *, title: str | None = None) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = template_text("script.js")
    return environment.get_template("report.html").render(
        name=page.name if title is None else title,
        lead=page.lead,
        files=page.files,
        version=__version__,
        tiles=page.tiles,
        sections=page.sections,
        origin=page.origin,
        style=Markup(template_text("palette.css") + template_text("charts.css") + template_text("style.css")),
        script=Markup(script),
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    )
