"""What a page holds: for a run, for a study with several questions, for label convergence, or for two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from softgold.errors import StorageError, UsageError
from softgold.evaluation import ClassEvaluation
from softgold.planning import forecast, plan_votes
from softgold.report.blocks import Cell, Panel, Section, Table, Tile, amount, named, percent, real
from softgold.report.convergence.section import convergence_section, convergence_tiles
from softgold.report.convergence.summary import ConvergenceSummary
from softgold.report.expert_section import expert_section, expert_tile
from softgold.report.label_sections import (
    adversaries,
    annotator_section,
    fit_section,
    glance_section,
    next_section,
    soft_section,
)
from softgold.report.lead import in_doubt, run_lead, study_lead, tells_abilities
from softgold.report.model_section import leading_words, model_section
from softgold.report.planning_section import planning_section
from softgold.report.summary import file_names
from softgold.runs import Run, Study

__all__ = ["Page", "convergence_page", "join_pages", "run_page", "study_page"]

Given = TypeVar("Given")
Built = TypeVar("Built")

MOST_TASKS = 24
REPORT_CAMPAIGNS = 20


@dataclass(frozen=True)
class Page:
    """The contents of a page.

    Attributes:
        name: Heading.
        lead: First paragraph.
        tiles: The numbers that tell most.
        sections: Sections, in order.
        origin: Where the data come from, as names and texts.
        files: Files that hold every number in full.
    """

    name: str
    lead: str
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    origin: tuple[tuple[str, str], ...]
    files: frozenset[str]


def run_page(run: Run) -> Page:
    """Return the page on one question; the parts of the run decide which sections there are."""
    return Page(
        run.path.resolve().name, run_lead(run), _run_tiles(run), _run_sections(run), _origin(run), file_names(run.path)
    )


def _run_sections(run: Run) -> tuple[Section, ...]:
    sections = [glance_section(run), soft_section(run)]
    if run.has("calibration"):
        sections.append(_built(expert_section, run.calibration, "calibration.json"))
    if run.has("evaluation"):
        sections.append(_built(model_section, run.evaluation, "evaluation.json"))
    if tells_abilities(run):
        sections.append(annotator_section(run.annotators))
    sections.append(_next_section(run))
    if run.has("fit"):
        sections.append(fit_section(run.fit))
    return tuple(sections)


def _built(build: Callable[[Given], Built], result: Given, name: str) -> Built:
    """Build a section or tile from a file that somebody may have edited: well typed, and yet with parts missing."""
    try:
        return build(result)
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, OverflowError) as error:
        raise StorageError(f"{name} is not what softgold writes: {error!r}; make it again") from error


def _next_section(run: Run) -> Section:
    """Say what further votes would change, where the model tells, and list the most uncertain items."""
    uncertain = next_section(run.soft_labels)
    if not run.has("fit"):
        return uncertain
    try:
        found = forecast(run.fit, n_campaigns=REPORT_CAMPAIGNS)
        plan = plan_votes(run.fit, len(run.soft_labels))
    except UsageError:  # a baseline does not say what a vote would change
        return uncertain
    planned = planning_section(found, plan, run.record.history)
    first, second = planned.panels[0], uncertain.panels[0]
    return replace(planned, panels=(replace(first, tables=(*first.tables, *second.tables)),))


def _run_tiles(run: Run) -> tuple[Tile, ...]:
    soft = run.soft_labels
    tiles = [
        Tile(f"{len(soft):,}", "items", f"{soft.n_votes.sum():,} votes" if soft.n_votes.any() else ""),
        Tile(f"{soft.uncertainty.mean():.1%}", "labels expected wrong", "if soft labels were cut at 0.5"),
    ]
    if tells_abilities(run):
        bad = len(adversaries(run.annotators))
        tiles.append(Tile(f"{len(run.annotators):,}", "annotators", f"{bad} of them adversaries" if bad else ""))
    if run.has("calibration"):
        tiles.append(_built(expert_tile, run.calibration, "calibration.json"))
    if run.has("evaluation"):
        leading = _built(leading_words, run.evaluation, "evaluation.json")
        if leading is not None:
            tiles.append(Tile(*leading))
    return tuple(tiles)


def _origin(run: Run) -> tuple[tuple[str, str], ...]:
    if not run.has("fit"):
        return ()
    record = run.record
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items() if version)
    return (
        ("votes", record.input.source or "from memory"),
        ("digest of the votes", record.input.digest),
        ("made with", versions),
    )


def study_page(study: Study) -> Page:
    """Return the page on several questions or classes: an overview first, then a tab per question in each section."""
    shown = dict(list(study.tasks.items())[:MOST_TASKS])
    by_task = {name: _run_sections(run) for name, run in shown.items()}
    judged: tuple[Section, ...] = ()
    if study.has("evaluation"):
        judged = (model_section(study.evaluation),)
    elif study.has("class_evaluation"):
        judged = (_class_section(study.class_evaluation),)
    sections = (overview_section(study), *judged, *merge_sections(by_task))
    tiles = (
        Tile(f"{len(study.tasks):,}", "questions" if study.kind == "tasks" else "classes"),
        Tile(f"{len(study.soft_labels_frame()):,}", "soft labels"),
    )
    return Page(
        study.path.resolve().name,
        study_lead(study),
        tiles,
        sections,
        _origin(next(iter(study.tasks.values()))),
        file_names(study.path),
    )


def _class_section(evaluation: ClassEvaluation) -> Section:
    """Show the models on all classes together, then per class."""
    section = model_section(evaluation.per_class)
    overall = evaluation.overall
    metrics = list(dict.fromkeys(overall["title"]))
    values = {(row["model"], row["title"]): row["value"] for row in overall.to_dict(orient="records")}
    rows = tuple(
        (named(model), *(real(values.get((model, title), float("nan"))) for title in metrics))
        for model in dict.fromkeys(overall["model"])
    )
    table = Table(("model", *metrics), rows, title="All classes together")
    first, *rest = section.panels
    return replace(section, panels=(replace(first, tables=(table, *first.tables)), *rest))


def overview_section(study: Study) -> Section:
    """Compare the questions in one table."""
    noun = "question" if study.kind == "tasks" else "class"
    columns = (noun, "items", "positive", "in doubt", "expected wrong", "threshold", "agreement with experts")
    rows = tuple(_overview_row(name, run) for name, run in study.tasks.items())
    words = f"One row per {noun}. “Expected wrong” is the share of wrong labels if soft labels were cut at 0.5."
    problems = tuple(notice.text for notice in study.problems())
    table = Table(columns, rows, title=f"All {'questions' if study.kind == 'tasks' else 'classes'}")
    return Section("overview", "Overview", words, (Panel(tables=(table,), notes=problems),))


def _overview_row(name: str, run: Run) -> tuple[Cell, ...]:
    soft = run.soft_labels
    row = [named(name), amount(len(soft)), percent(float((soft.p >= 0.5).mean())), amount(in_doubt(soft))]
    row.append(percent(float(soft.uncertainty.mean())))
    if not run.has("calibration"):
        return (*row, Cell("–"), Cell("–"))
    return (*row, real(run.calibration.threshold), percent(run.calibration.after.agreement))


def merge_sections(by_task: Mapping[str, tuple[Section, ...]]) -> tuple[Section, ...]:
    """Make one section of those with the same key, with a tab per question."""
    by_key: dict[str, dict[str, Section]] = {}
    for task, sections in by_task.items():
        for section in sections:
            by_key.setdefault(section.key, {})[task] = section
    return tuple(_merged(sections) for sections in by_key.values())


def _merged(sections: Mapping[str, Section]) -> Section:
    """Give each question its tab; what a section says of one question alone goes into that tab."""
    first = next(iter(sections.values()))
    shared = len({section.words for section in sections.values()}) == 1
    panels = []
    for task, section in sections.items():
        for at, panel in enumerate(section.panels):
            name = task if panel.name is None else f"{task}: {panel.name}"
            own = "" if shared or at else f"{section.words} "
            panels.append(replace(panel, name=name, words=f"{own}{panel.words}".strip()))
    return replace(first, words=first.words if shared else "", panels=tuple(panels))


def convergence_page(summary: ConvergenceSummary) -> Page:
    """Return the page on label convergence.

    Raises:
        StorageError: convergence.json was edited, and no longer fits.
    """
    lead = "How far the raters agree on what is in each image, in what they differ, and how high a model can score."
    try:
        made_with = summary.record.get("versions") or {}
        versions = ", ".join(f"{name} {version}" for name, version in made_with.items() if version)
        origin = (("annotations", str(summary.record.get("input"))), ("made with", versions))
        tiles, section = convergence_tiles(summary), convergence_section(summary)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StorageError(
            f"convergence.json is not what this version of softgold writes: {error!r}; write it again"
        ) from error
    return Page(summary.name, lead, tuple(tiles), (section,), origin, summary.files)


def join_pages(first: Page, second: Page) -> Page:
    """Return the first page with tiles and sections of the second after its own."""
    return replace(first, tiles=(*first.tiles, *second.tiles), sections=(*first.sections, *second.sections))
