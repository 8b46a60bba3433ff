"""From the values of a run to one page that needs nothing else: no network, and no script to be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from softgold import __version__
from softgold.errors import InputError, StorageError
from softgold.output import PathLike, atomic_file, to_jsonable
from softgold.report.blocks import Section, Tile
from softgold.report.convergence.section import convergence_section, convergence_tiles
from softgold.report.convergence.summary import ConvergenceSummary, read_convergence
from softgold.report.expert_section import expert_section
from softgold.report.label_sections import (
    adversaries,
    annotator_section,
    fit_section,
    glance_section,
    next_section,
    soft_section,
)
from softgold.report.model_section import leading_words, model_section
from softgold.report.summary import file_names
from softgold.report.svg import TEMPLATES, template_text
from softgold.runs import Run, open_run

__all__ = ["render_report", "report_sections", "write_report"]

Given = TypeVar("Given")
Result = TypeVar("Result")


def write_report(
    run: PathLike, output: PathLike | None = None, *, title: str | None = None, force: bool = False
) -> Path:
    """Write the report of a run directory, or of a folder of `softgold convergence`, as one HTML file.

    Args:
        run: The directory; its files decide which sections there are, and it may be both.
        output: Where to write; `report.html` in the directory if left out.
        title: Name of the run in the report; that of its directory if left out.
        force: Replace an existing file.

    Returns:
        The path of the report.
    """
    folder = Path(run)
    target = folder / "report.html" if output is None else Path(output)
    convergence = read_convergence(folder)
    is_run = convergence is None or (folder / "soft_labels.csv").is_file()
    page = render_report(open_run(folder) if is_run else None, convergence, title=title)
    with atomic_file(target, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return target


def render_report(run: Run | None, convergence: ConvergenceSummary | None = None, *, title: str | None = None) -> str:
    """Return the page on a run, on label convergence, or on both."""
    if run is None and convergence is None:
        raise InputError("a report needs a run, or label convergence")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        name=_name(run, convergence) if title is None else title,
        lead=_lead(run),
        files=_files(run, convergence),
        version=__version__,
        tiles=report_tiles(run, convergence),
        sections=report_sections(run, convergence),
        origin=_origin(run, convergence),
        style=Markup(template_text("palette.css") + template_text("charts.css") + template_text("style.css")),
        script=Markup(template_text("script.js")),
    )


def _name(run: Run | None, convergence: ConvergenceSummary | None) -> str:
    if run is not None:
        return run.path.resolve().name
    return "" if convergence is None else convergence.name


def _files(run: Run | None, convergence: ConvergenceSummary | None) -> frozenset[str]:
    if run is not None:
        return file_names(run.path)
    return frozenset() if convergence is None else convergence.files


def report_sections(run: Run | None, convergence: ConvergenceSummary | None = None) -> list[Section]:
    """Return the sections that there is something for."""
    sections = [] if run is None else _run_sections(run)
    if convergence is not None:
        sections.append(_built(convergence_section, convergence, "convergence.json"))
    return sections if run is None else [*sections, next_section(run)]


def _run_sections(run: Run) -> list[Section]:
    sections = [glance_section(run), soft_section(run)]
    if _tells_abilities(run):
        sections.append(annotator_section(run.annotators))
    if run.has("fit"):
        sections.append(fit_section(run.fit))
    if run.has("calibration"):
        sections.append(_built(expert_section, to_jsonable(run.calibration.to_dict()), "calibration.json"))
    if run.has("evaluation"):
        sections.append(_built(model_section, to_jsonable(run.evaluation.to_dict()), "evaluation.json"))
    return sections


def _tells_abilities(run: Run) -> bool:
    """Return whether the model says how able annotators are; a baseline does not."""
    return run.has("annotators") and "ability_mean" in run.annotators and len(run.annotators) > 0


def report_tiles(run: Run | None, convergence: ConvergenceSummary | None = None) -> list[Tile]:
    """Return the numbers that tell most."""
    tiles = [] if run is None else _run_tiles(run)
    if convergence is not None:
        tiles += _built(convergence_tiles, convergence, "convergence.json")
    return tiles


def _run_tiles(run: Run) -> list[Tile]:
    soft = run.soft_labels
    tiles = [Tile(f"{len(soft):,}", "items", f"{soft.n_votes.sum():,} votes" if soft.n_votes.any() else "")]
    tiles.append(Tile(f"{soft.uncertainty.mean():.1%}", "labels expected wrong", "if soft labels were cut at 0.5"))
    if _tells_abilities(run):
        bad = len(adversaries(run.annotators))
        tiles.append(Tile(f"{len(run.annotators):,}", "annotators", f"{bad} of them adversaries" if bad else ""))
    if run.has("calibration"):
        after = run.calibration.after
        words = f"{after.positives:,} positives, {after.agreement:.1%} agreement with experts"
        tiles.append(Tile(f"{run.calibration.threshold:.3f}", "experts' threshold", words))
    if run.has("evaluation"):
        leading = _built(leading_words, to_jsonable(run.evaluation.to_dict()), "evaluation.json")
        if leading is not None:
            tiles.append(Tile(leading[0], "first by soft AUROC", leading[1]))
    return tiles


def _lead(run: Run | None) -> str:
    if run is None:
        return "How far the raters agree on what is in each image, in what they differ, and how high a model can score."
    models = " and the models judged by them" if run.has("evaluation") else ""
    return f"What the votes say of each item, how sure that is, and what it means for the labels{models}."


def _built(build: Callable[[Given], Result], record: Given, name: str) -> Result:
    """Build from a file that somebody may have edited; what is wrong with it is its fault, not ours."""
    try:
        return build(record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StorageError(f"{name} is not what this version of softgold writes: {error!r}; write it again") from error


def _origin(run: Run | None, convergence: ConvergenceSummary | None) -> list[tuple[str, str]]:
    """Return where the data come from, as names and texts."""
    if run is not None and run.has("fit"):
        record = run.record
        versions = ", ".join(f"{name} {version}" for name, version in record.versions.items() if version)
        return [
            ("votes", record.input.source or "from memory"),
            ("digest of the votes", record.input.digest),
            ("made with", versions),
        ]
    if convergence is None:
        return []
    made_with = convergence.record.get("versions") or {}
    versions = ", ".join(f"{name} {version}" for name, version in made_with.items() if version)
    return [("annotations", str(convergence.record.get("input"))), ("made with", versions)]
