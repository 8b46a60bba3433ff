"""Sections on the labels: the data at a glance, the soft labels, the annotators, the fit, and what to look at next."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.models.base import ADVERSARIAL
from softgold.report.blocks import Cell, Figure, Panel, Section, Table, amount, figure, named, numbers, percent, real
from softgold.report.plots import Mark, Spread, curve, histogram, spreads
from softgold.runs import Run
from softgold.runs.records import RunRecord
from softgold.tables.soft_labels import SoftLabels

FloatArray = NDArray[np.float64]

MOST_ITEMS = 20
MOST_ANNOTATORS = 40
MOST_DRAWN = 240
MOST_STEPS = 300
MOST_VOTE_BINS = 25
FEW_ANNOTATORS = 8  # fewer are better read in the table than in a histogram


def thresholds(run: Run) -> list[Mark]:
    """Return the cuts to draw over soft labels: one half, and the calibrated one with its interval."""
    if not run.has("calibration"):
        return [Mark(0.5, "cut at 0.5", "faint")]
    chosen = run.brief_calibration.threshold
    return [Mark(0.5, "0.5", "faint"), Mark(chosen, f"experts' threshold {chosen:.2f}")]


def glance_section(run: Run) -> Section:
    """Say what the data are, and how many votes the items have."""
    figures = []
    soft = run.brief_labels
    known = soft.n_votes[soft.n_votes > 0]
    if len(np.unique(known)) > 1:
        figures.append(_votes_figure(known))
    rows = [("items", f"{len(soft):,}")]
    problems: tuple[str, ...] = ()
    if run.has("fit"):
        description = run.votes_in_parts.describe()
        rows, problems = description.rows(), description.warnings
    facts = Table(("what", "how much"), tuple((Cell(name), Cell(text)) for name, text in rows), title="The votes")
    words = "What was collected, and how evenly the votes are spread over the items."
    return Section("data", "The data at a glance", words, (Panel(tuple(figures), (facts,), problems),))


def _votes_figure(counts: NDArray[np.int64]) -> Figure:
    """Count items by their votes, one bin per number, the long tail in one bin."""
    top = int(np.quantile(counts, 0.98))
    step = max(1, -(-(top - int(counts.min()) + 1) // MOST_VOTE_BINS))
    starts = list(range(int(counts.min()), top + 1, step))
    found = [int(((counts >= start) & (counts < start + step)).sum()) for start in starts]
    labels = [str(start) if step == 1 else f"{start}-{start + step - 1}" for start in starts]
    beyond = int((counts >= starts[-1] + step).sum())
    if beyond:
        found.append(beyond)
        labels.append(f"{starts[-1] + step}+")
    few = float((counts <= 2).mean())
    spread = f"Median {np.median(counts):g} votes per item, from {counts.min():,} to {counts.max():,}"
    told = f"{spread}; {few:.1%} of the items have one or two."
    return figure(
        "Votes per item",
        f"Items with few votes keep an uncertain label however able the annotators are. {told}",
        histogram(
            [number - 0.5 for number in range(len(found) + 1)],
            found,
            x_title="votes on an item",
            labels=labels,
        ),
        told,
        numbers(("votes", "items"), [(label, amount(count)) for label, count in zip(labels, found, strict=True)]),
    )


def soft_section(run: Run) -> Section:
    """Show the distributions of p and of min(p, 1 - p)."""
    p, unsure = run.brief_labels.p, run.brief_labels.uncertainty
    wrong = float(unsure.mean())
    in_doubt = float((unsure > 0.25).mean())
    told = (
        f"{(p >= 0.5).mean():.1%} of the items lie at 0.5 or above; {in_doubt:.1%} are in doubt, between 0.25 and 0.75."
    )
    doubt = f"Cut at 0.5, {wrong:.1%} of the labels are expected to be wrong."
    figures = (
        _share_figure(
            "Soft labels",
            "The soft label p is the probability that an item is positive, given all votes and how able each annotator "
            f"is. {told}",
            p,
            np.linspace(0, 1, 41),
            "p, the probability of a positive",
            thresholds(run),
            told,
        ),
        _share_figure(
            "Doubt in each label",
            "The smaller of p and 1 − p is the chance that a label cut at 0.5 is wrong: 0 is certain, 0.5 is a coin "
            f"toss. {doubt}",
            unsure,
            np.linspace(0, 0.5, 26),
            "min(p, 1 − p)",
            [Mark(wrong, f"mean {wrong:.3f}", "faint")],
            doubt,
        ),
    )
    words = "How sure the crowd is of each item, and what a hard label would hide."
    problems = tuple(notice.text for notice in run.problems())
    return Section("soft-labels", "Soft labels", words, (Panel(figures, notes=problems),))


def _share_figure(
    title: str, words: str, values: FloatArray, edges: FloatArray, axis: str, marks: list[Mark], told: str
) -> Figure:
    counts = np.histogram(values, edges)[0]
    rows = [
        (Cell(f"{low:.3f} – {high:.3f}", float(low)), amount(count))
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    chart = histogram(edges.round(6).tolist(), counts.tolist(), x_title=axis, marks=marks)
    return figure(title, words, chart, told, numbers(("range", "items"), rows))


def adversaries(table: pd.DataFrame) -> pd.DataFrame:
    """Return the annotators with P(adversarial) above 0.95, the least able first."""
    return table[table["p_adversarial"] > ADVERSARIAL].sort_values("ability_mean")


def annotator_section(table: pd.DataFrame) -> Section:
    """Show abilities with intervals and activity, and name the adversaries."""
    bad = adversaries(table)
    ordered = table.sort_values(["p_adversarial", "n_votes"], ascending=False)
    shown = pd.concat([bad, ordered.drop(bad.index)]).head(MOST_ANNOTATORS)
    notes = []
    if len(bad):
        named = _named(bad)
        share = bad["n_votes"].sum() / table["n_votes"].sum()
        notes.append(
            f"{len(bad)} of {len(table):,} annotators vote against the truth with a probability above 0.95 "
            f"({share:.1%} of all votes): {named}. Their votes are turned around and used, not thrown away."
        )
    listing = Table(
        (
            "annotator",
            "ability",
            "95 % interval",
            "sensitivity",
            "specificity",
            "P(adversarial)",
            "votes",
            "agrees with the others",
        ),
        tuple(_annotator_row(row) for row in shown.to_dict(orient="records")),
        title="Annotators",
        words="Those who may be adversaries first, then the most active." if len(bad) else "",
        rest=f"{len(shown):,} of {len(table):,}; all are in annotators.csv" if len(shown) < len(table) else "",
    )
    words = (
        "Sensitivity: how often an annotator says yes when the answer is yes; specificity: how often no when it is no. "
        "An ability of 0 is guessing, and a negative one means that the annotator says the opposite of what is true."
    )
    figures = [_ability_figure(table, len(bad))]
    if len(table) >= FEW_ANNOTATORS:
        figures.append(_activity_figure(table))
    return Section("annotators", "Annotators", words, (Panel(tuple(figures), (listing,), tuple(notes)),))


def _named(bad: pd.DataFrame, most: int = 8) -> str:
    pairs = list(zip(bad["annotator"], bad["n_votes"], strict=True))
    names = ", ".join(f"{named(name).text} ({votes:,.0f} votes)" for name, votes in pairs[:most])
    return names + (f" and {len(pairs) - most} more" if len(pairs) > most else "")


def _annotator_row(row: Mapping[Hashable, Any]) -> tuple[Cell, ...]:
    span = f"{row['ability_lo']:.2f} to {row['ability_hi']:.2f}"
    return (
        named(row["annotator"]),
        real(row["ability_mean"], 2),
        Cell(span, float(row["ability_lo"])),
        *(_rate(row, name) for name in ("sensitivity", "specificity")),
        real(row["p_adversarial"], 3),
        amount(row["n_votes"]),
        percent(row["agreement"]),
    )


def _rate(row: Mapping[Hashable, Any], name: str) -> Cell:
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_lo", "_hi"))
    return Cell(f"{value:.0%} ({low:.0%} to {high:.0%})", value)


def _ability_figure(table: pd.DataFrame, n_bad: int) -> Figure:
    ordered = table.sort_values("ability_mean", ignore_index=True)
    # Of too many to draw, evenly spaced annotators are shown.
    drawn = ordered.iloc[np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_DRAWN)).astype(int))]
    values = [
        Spread(
            x=number,
            value=row["ability_mean"],
            low=row["ability_lo"],
            high=row["ability_hi"],
            hint=f"{row['annotator']}: {row['ability_mean']:.2f}, {row['n_votes']:,.0f} votes",
            warns=bool(row["p_adversarial"] > ADVERSARIAL),
        )
        for number, row in enumerate(drawn.to_dict(orient="records"))
    ]
    quartiles = np.quantile(table["ability_mean"], [0.25, 0.5, 0.75])
    adversaries = f"{n_bad} are adversaries, drawn as diamonds" if n_bad else "nobody is an adversary"
    told = (
        f"Half of the {len(table):,} annotators have an ability between {quartiles[0]:.2f} and {quartiles[2]:.2f}, the "
        f"median is {quartiles[1]:.2f}; {adversaries}."
    )
    some = "" if len(drawn) == len(table) else f" {len(drawn)} of {len(table):,} are drawn, evenly spaced."
    return figure(
        "Ability of each annotator",
        "One dot per annotator, least able on the left, with a 95 % credible interval; long lines are people with few "
        f"votes. {told}{some}",
        spreads(values, x_title="annotators, by ability", y_title="ability", zero="guessing"),
        told,
        wide=True,
    )


def _activity_figure(table: pd.DataFrame) -> Figure:
    """Count annotators by votes, in bins that double."""
    votes = table["n_votes"].to_numpy()
    powers = np.floor(np.log2(np.maximum(votes, 1))).astype(int)
    starts = [2**power for power in range(int(powers.min()), int(powers.max()) + 1)]
    counts = [int(((votes >= start) & (votes < 2 * start)).sum()) for start in starts]
    labels = [str(start) if start == 1 else f"{start}-{2 * start - 1}" for start in starts]
    ordered = np.sort(votes)[::-1]
    tenth = max(1, round(len(votes) / 10))
    told = f"The most active tenth of the annotators gave {ordered[:tenth].sum() / votes.sum():.0%} of the votes."
    return figure(
        "Activity",
        f"How many votes an annotator gave; each bin is twice as wide as the one before. {told}",
        histogram(
            [number - 0.5 for number in range(len(counts) + 1)],
            counts,
            x_title="votes by an annotator",
            y_title="annotators",
            labels=labels,
        ),
        told,
        numbers(("votes", "annotators"), [(label, amount(n)) for label, n in zip(labels, counts, strict=True)]),
    )


def fit_section(record: RunRecord) -> Section:
    """Show whether the fit settled, and the bound that it raised."""
    found = record.diagnostics
    settled = "The fit settled" if found.converged else "The fit did NOT settle"
    seconds = f" after {found.seconds:.1f} seconds" if found.seconds == found.seconds else ""
    facts = numbers(
        ("fit", "value"),
        [
            ("model", record.model),
            *((name, str(record.settings[name])) for name in ("engine", "seed") if name in record.settings),
            ("settled", "yes" if found.converged else "no"),
            ("steps", amount(found.steps)),
            *((name.replace("_", " "), real(value)) for name, value in (found.learned or {}).items()),
            ("connected components", amount(len(found.components))),
        ],
    )
    bound = [value for value in found.elbo if np.isfinite(value)]
    figures = (_bound_figure(bound),) if len(bound) > 1 else ()
    words = f"{settled}{seconds}: {found.reason}."
    return Section("fit", "The fit", words, (Panel(figures, (facts,), found.warnings),))


def _bound_figure(bound: list[float]) -> Figure:
    places = np.unique(np.linspace(0, len(bound) - 1, min(len(bound), MOST_STEPS)).astype(int))
    points = [(float(place + 1), bound[place]) for place in places]
    told = f"{bound[0]:,.1f} at the first step, {bound[-1]:,.1f} at the last of {len(bound):,}."
    return figure(
        "Evidence lower bound",
        f"A lower bound on the log probability of the votes; a flat end means that the fit has settled. {told}",
        curve(points, x_title="step", y_title="bound (ELBO)"),
        told,
    )


def next_section(soft: SoftLabels) -> Section:
    """List the most uncertain items."""
    # Of equal values the one with fewer votes first, then the order of the table.
    unsure = soft.uncertainty
    least = np.partition(unsure, -min(MOST_ITEMS, len(soft)))[-min(MOST_ITEMS, len(soft))]
    most = np.flatnonzero(unsure >= least)
    order = most[np.lexsort((most, soft.n_votes[most], -unsure[most]))][:MOST_ITEMS]
    rows = tuple(
        (
            named(soft.item_ids[at]),
            real(soft.p[at]),
            amount(soft.n_votes[at]),
            Cell(f"{soft.n_positive[at]:g}", float(soft.n_positive[at])),
            real(soft.uncertainty[at], 4),
        )
        for at in order
    )
    table = Table(
        ("item", "p", "votes", "positive", "min(p, 1 − p)"),
        rows,
        "Most uncertain labels",
        "Ask an expert about these first, or leave them out of a benchmark that needs certain labels.",
        f"{len(rows)} of {len(soft):,}; all are in the table of soft labels" if len(rows) < len(soft) else "",
    )
    return Section("next", "What to do next", "Where another look pays off most.", (Panel(tables=(table,)),))
