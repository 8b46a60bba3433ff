"""What a page holds: for a run, for a study with several questions, for label convergence, or for two of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from softgold.errors import BudgetError, StorageError, UsageError
from softgold.evaluation import ClassEvaluation
from softgold.experts import Calibration
from softgold.models.base import Posterior
from softgold.planning import VotePlan, forecast, plan_votes
from softgold.report.blocks import Cell, Panel, Section, Table, Tile, amount, interval, named, percent, real
from softgold.report.convergence.section import convergence_section, convergence_tiles
from softgold.report.convergence.summary import ConvergenceSummary
from softgold.report.expert_section import expert_section
from softgold.report.label_sections import (
    annotator_section,
    fit_section,
    glance_section,
    next_section,
    soft_section,
)
from softgold.report.lead import in_doubt, run_lead, study_lead, tells_abilities
from softgold.report.model_section import model_section
from softgold.report.planning_section import planning_section
from softgold.report.summary import file_names
from softgold.report.tiles import built, run_tiles, study_tiles
from softgold.runs import Run, Study
from softgold.tables.parts import VotesInParts

MOST_TASKS = 24
REPORT_CAMPAIGNS = 20


@dataclass(frozen=True)
class Page:
    """The contents of a page.

    Attributes:
        name: Heading.
        lead: First paragraph.
        tiles: Key numbers.
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
        run.path.resolve().name, run_lead(run), run_tiles(run), _run_sections(run), _origin(run), file_names(run.path)
    )


def _run_sections(run: Run) -> tuple[Section, ...]:
    sections = [glance_section(run), soft_section(run)]
    if run.has("calibration"):
        sections.append(built(expert_section, run.brief_calibration, "calibration"))
    if run.has("evaluation"):
        sections.append(built(model_section, run.evaluation, "evaluation"))
    if tells_abilities(run):
        sections.append(annotator_section(run.annotators))
    sections.append(_next_section(run))
    if run.has("fit"):
        sections.append(fit_section(run.record))
    return tuple(sections)


def _next_section(run: Run) -> Section:
    """Say what further votes would change, where the model tells, and list the most uncertain items."""
    uncertain = next_section(run.brief_labels)
    if not run.has("fit"):
        return uncertain
    try:
        fitted, votes = run.brief_posterior, run.votes_in_parts
        found = forecast(fitted, votes=votes, n_campaigns=REPORT_CAMPAIGNS)
    except UsageError:  # a baseline does not say what a vote would change
        return uncertain
    plan = _plan(fitted, votes, len(run.brief_labels))
    planned = planning_section(found, plan, run.record.history)
    first, second = planned.panels[0], uncertain.panels[0]
    return replace(planned, panels=(replace(first, tables=(*first.tables, *second.tables)),))


def _plan(fitted: Posterior, votes: VotesInParts, budget: int) -> VotePlan | None:
    """Return the votes to buy first, at most `budget`; None if no vote is worth buying."""
    try:
        return plan_votes(fitted, budget, votes=votes, with_people=False)
    except BudgetError as error:
        return plan_votes(fitted, error.open_votes, votes=votes, with_people=False) if error.open_votes else None


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
    return Page(
        study.path.resolve().name,
        study_lead(study),
        study_tiles(study),
        sections,
        _origin(next(iter(study.tasks.values()))),
        file_names(study.path),
    )


def _class_section(evaluation: ClassEvaluation) -> Section:
    """Show the models on all classes together, then per class."""
    section = model_section(evaluation.per_class, "classes")
    overall = evaluation.overall
    metrics = list(dict.fromkeys(overall["title"]))
    cells = {(row["model"], row["title"]): _overall_cell(row) for row in overall.to_dict(orient="records")}
    rows = [
        (named(model), *(cells.get((model, title), real(None)) for title in metrics))
        for model in dict.fromkeys(overall["model"])
    ]
    ceilings = overall.drop_duplicates("title").set_index("title")["ceiling"]
    rows.append((Cell("ceiling"), *(real(ceilings[title]) for title in metrics)))
    words = (
        "With intervals; the best value of each column is in bold. Of Brier and log loss, less is better. The ceiling "
        "is what the soft labels themselves would score."
    )
    table = Table(("model", *metrics), tuple(rows), "All classes together", words, is_whole=True)
    first, *rest = section.panels
    return replace(section, panels=(replace(first, tables=(table, *first.tables)), *rest))


def _overall_cell(row: Mapping[Hashable, Any]) -> Cell:
    ends = (None, None) if math.isnan(row["low"]) else (row["low"], row["high"])
    return interval(row["value"], *ends, strong=row["rank"] == 1)


def overview_section(study: Study) -> Section:
    """Compare the questions in one table."""
    noun = "question" if study.kind == "tasks" else "class"
    columns = (noun, "items", "positive", "in doubt", "expected wrong", "threshold", "agreement with experts")
    rows = tuple(_overview_row(name, run) for name, run in study.tasks.items())
    words = f"One row per {noun}. “Expected wrong” is the share of wrong labels if soft labels were cut at 0.5."
    if any(run.has("calibration") for run in study.tasks.values()):
        words += " Intervals of threshold and agreement are in brackets."
    problems = tuple(notice.text for notice in study.problems())
    title = f"All {'questions' if study.kind == 'tasks' else 'classes'}"
    table = Table(columns, rows, title=title, is_whole=True)
    return Section("overview", "Overview", words, (Panel(tables=(table,), notes=problems),))


def _overview_row(name: str, run: Run) -> tuple[Cell, ...]:
    soft = run.brief_labels
    row = [named(name), amount(len(soft)), percent(float((soft.p >= 0.5).mean())), amount(in_doubt(soft))]
    row.append(percent(float(soft.uncertainty.mean())))
    if not run.has("calibration"):
        return (*row, Cell("–"), Cell("–"))
    return (*row, *built(_expert_cells, run.brief_calibration, "calibration"))


def _expert_cells(calibration: Calibration) -> tuple[Cell, Cell]:
    """Return the threshold and the agreement with experts, each with its interval."""
    span, rate = calibration.interval("both"), calibration.error_rates.accuracy
    threshold = interval(calibration.threshold, span.low, span.high)
    if math.isnan(rate.value):
        return threshold, percent(rate.value)
    ends = "" if math.isnan(rate.low) else f" ({100 * rate.low:.0f}–{100 * rate.high:.0f})"
    return threshold, Cell(f"{100 * rate.value:.1f} %{ends}", rate.value)


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
    lead = "How far the raters agree on what is in each image, how they differ, and how high a model can score."
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
