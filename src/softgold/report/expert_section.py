"""The section on experts: their answers, the map to p_calibrated, the threshold, and how sure all of it is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from softgold.agreement import Agreement
from softgold.experts import Calibration, Rate, ThresholdInterval
from softgold.report.blocks import (
    Cell,
    Figure,
    Panel,
    Section,
    Table,
    Tile,
    amount,
    figure,
    interval,
    named,
    numbers,
    percent,
    real,
)
from softgold.report.expert_plots import MapPoint, map_chart
from softgold.report.plots import Mark, Spread, curve, histogram

SOURCES = {"panel": "other experts", "items": "other items", "both": "other experts and items"}
CURVE_POINTS = 101
HISTOGRAM_BINS = 40


def expert_section(calibration: Calibration) -> Section:
    """Show what the experts said, the map and the threshold that follow, and the error rates."""
    tables = [
        _quality_table(calibration),
        _error_table(calibration),
        _interval_table(calibration),
        _rule_table(calibration),
        _expert_table(calibration),
    ]
    figures = [_rates_figure(calibration)]
    figures.append(_threshold_figure(calibration.interval("both"), calibration.threshold))
    figures.append(_sensitivity_figure(calibration))
    words = _words(calibration)
    if calibration.agreement is not None:
        tables.append(_agreement_table(calibration.agreement))
        words += f" {_alpha_words(calibration.agreement)}"
    panel = Panel(tuple(figures), tuple(tables), calibration.warnings)
    return Section("experts", "Experts and the threshold", words, (panel,))


def expert_tile(calibration: Calibration) -> Tile:
    """Return the card: the threshold, and agreement with the experts there and at 0.5."""
    before, after = calibration.before, calibration.after
    span = calibration.interval("both")
    words = (
        f"{span.level:.0%} interval {span.low:.3f} to {span.high:.3f}; {after.positives:,} positives; agreement with "
        f"experts {_share(after.agreement)}, at 0.5 {_share(before.agreement)}"
    )
    return Tile(f"{calibration.threshold:.3f}", "experts' threshold", words)


def _words(calibration: Calibration) -> str:
    before, after = calibration.before, calibration.after
    return (
        f"Experts labelled {calibration.n_labelled:,} items; the threshold {calibration.threshold:.4f} was chosen by "
        f"the rule {calibration.rule.name}. It labels {after.positives:,} items positive ({after.prevalence:.1%}), "
        f"against {before.positives:,} at 0.5. Cross-validated and weighted to the whole data set, labels agree with "
        f"the experts on {_share(after.agreement)} of the items, and on {_share(before.agreement)} when cut at 0.5. "
        f"{calibration.error_rates.sentence}"
    )


def _share(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.1%}"


def _alpha_words(found: Agreement) -> str:
    if math.isnan(found.alpha):
        return "How far the experts agree among themselves is unknown: no item has labels of two of them."
    return (
        f"The experts agree among themselves with a Krippendorff alpha of {found.alpha:.2f} "
        f"({found.interval.low:.2f} to {found.interval.high:.2f}), which is called {found.landis_koch}; 1 is full "
        "agreement, 0 is chance."
    )


def _rates_figure(calibration: Calibration) -> Figure:
    labelled = calibration.bins[calibration.bins["labelled"] > 0]
    spreads = [
        Spread(
            row["p_mean"],
            row["rate"],
            row["rate_lo"],
            row["rate_hi"],
            f"bin {row['bin']}: {row['positives']} of {row['labelled']}",
        )
        for row in _records(labelled)
    ]
    at = np.linspace(0, 1, CURVE_POINTS)
    low, high = calibration.soft_map.band(at)
    mapped = calibration.soft_map.apply(at)
    points = [MapPoint(*map(float, values)) for values in zip(at, mapped, low, high, strict=True)]
    told = f"{len(labelled)} bins with expert labels; the threshold is {calibration.threshold:.3f}."
    return figure(
        "What experts call positive",
        "Each dot is a bin of items with similar soft labels: across, their mean soft label; upwards, the share that "
        "the experts called positive, with a 95 % interval. The line maps p to p_calibrated, with its credible "
        "band; on the dashed diagonal it would change nothing. The threshold is where p_calibrated reaches the dotted "
        f"line, under the rule map. {told}",
        map_chart(spreads, points, cut=calibration.rule.cut, threshold=calibration.threshold),
        told,
        _bin_table(calibration.bins),
    )


def _bin_table(bins: pd.DataFrame) -> Table:
    columns = ("bin", "mean p", "items", "labelled", "positive", "share", "interval", "p_calibrated")
    rows = [
        (
            amount(row["bin"]),
            real(row["p_mean"]),
            amount(row["items"]),
            amount(row["labelled"]),
            amount(row["positives"]),
            real(row["rate"]),
            _range(row["rate_lo"], row["rate_hi"]),
            real(row["p_calibrated"]),
        )
        for row in _records(bins)
    ]
    return numbers(columns, rows)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict(orient="records")]


def _range(low: float, high: float, digits: int = 3) -> Cell:
    return Cell("–", -math.inf) if math.isnan(low) else Cell(f"{low:.{digits}f} – {high:.{digits}f}", low)


def _sensitivity_figure(calibration: Calibration) -> Figure:
    table, threshold = calibration.sensitivity, min(calibration.threshold, 1.0)
    shares, cuts = table["prevalence"], table["threshold"].clip(upper=1.0)
    told = (
        f"Between thresholds {cuts.iloc[0]:.2f} and {cuts.iloc[-1]:.2f} the share of positives goes from "
        f"{shares.max():.1%} to {shares.min():.1%}."
    )
    return figure(
        "If the threshold were different",
        f"The share of items that would be labelled positive. A flat curve: the choice matters little. {told}",
        curve(
            list(zip(cuts.tolist(), shares.tolist(), strict=True)),
            x_title="threshold",
            y_title="labelled positive",
            marks=[Mark(threshold, f"chosen {threshold:.2f}")],
            from_zero=True,
            percent=True,
        ),
        told,
        numbers(
            ("threshold", "positives", "share"),
            [(real(row["threshold"]), amount(row["positives"]), percent(row["prevalence"])) for row in _records(table)],
        ),
    )


def _threshold_figure(found: ThresholdInterval, threshold: float) -> Figure:
    """Draw how likely each threshold is when experts and items are drawn anew, as shares of 1,000 draws."""
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    shares, _ = np.histogram(np.minimum(found.thresholds, 1.0), bins=edges, weights=found.probability)
    told = f"{100 * found.level:g} % of the draws lie between {found.low:.3f} and {found.high:.3f}."
    rows = [
        (Cell(f"{edges[at]:.3f} – {edges[at + 1]:.3f}", float(edges[at])), percent(float(share)))
        for at, share in enumerate(shares)
        if share > 0
    ]
    return figure(
        "How sure the threshold is",
        f"Thresholds that {SOURCES[found.source]} of the same kind would have given, in 1,000 draws. {told} That is "
        f"{found.positives_low:,} to {found.positives_high:,} positives.",
        histogram(
            edges.tolist(),
            [round(1000 * float(share)) for share in shares],
            x_title="threshold",
            y_title="draws of 1,000",
            marks=[Mark(min(threshold, 1.0), f"chosen {threshold:.2f}")],
        ),
        told,
        numbers(("threshold", "share of draws"), rows),
    )


def _quality_table(calibration: Calibration) -> Table:
    before, after = calibration.before, calibration.after
    rows = (
        ("threshold", real(before.threshold, 4), real(after.threshold, 4)),
        ("positives", amount(before.positives), amount(after.positives)),
        ("share of positives", percent(before.prevalence), percent(after.prevalence)),
        ("agreement with the experts*", percent(before.agreement), percent(after.agreement)),
        ("Cohen's kappa with the experts*", real(before.kappa), real(after.kappa)),
        ("wrong labels to expect, by p", percent(before.expected_wrong, 2), percent(after.expected_wrong, 2)),
        (
            "wrong labels to expect, by p_calibrated",
            percent(before.expected_wrong_calibrated, 2),
            percent(after.expected_wrong_calibrated, 2),
        ),
    )
    note = "* cross-validated and weighted to the whole data set, both columns alike"
    return numbers(("labels", "cut at 0.5", "cut at the threshold"), rows, "Labels before and after", note)


def _error_table(calibration: Calibration) -> Table:
    rates = calibration.error_rates
    rows = [
        ("accuracy", _rate(rates.accuracy)),
        ("sensitivity", _rate(rates.sensitivity)),
        ("specificity", _rate(rates.specificity)),
    ]
    losses = calibration.soft_map.log_loss
    words = (
        f"Cross-validated log loss against the experts: p {_loss(losses.p)}, logit map {_loss(losses.logit)}, isotonic "
        f"map {_loss(losses.isotonic)}; p_calibrated is by the {calibration.soft_map.name} map."
    )
    columns = ("released labels against the experts", f"{100 * rates.level:g} % interval")
    return numbers(columns, rows, "Error rates", words)


def _rate(rate: Rate) -> Cell:
    if math.isnan(rate.value):
        return Cell("–", -math.inf)
    return Cell(f"{100 * rate.value:.1f} % ({100 * rate.low:.1f} – {100 * rate.high:.1f} %)", rate.value)


def _loss(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.3f}"


def _interval_table(calibration: Calibration) -> Table:
    rows = [
        (
            f"with {SOURCES[found.source]}",
            _range(found.low, found.high, 4),
            Cell(f"{found.positives_low:,} – {found.positives_high:,}", found.positives_low),
            Cell("all cases enumerated" if found.exact else f"{found.n_resamples:,} resamples"),
        )
        for found in calibration.intervals
    ]
    settings = calibration.settings
    words = f"Other items: {settings.redrawn} of labelled items are redrawn." if settings.group_name else ""
    return numbers(("had we asked", "threshold", "positives", "how"), rows, "How far the threshold could move", words)


def _rule_table(calibration: Calibration) -> Table:
    rows = [
        (
            Cell(row["rule"], strong=row["rule"] == calibration.rule.name),
            real(row["threshold"], 4),
            amount(row["positives"]),
            percent(row["agreement"]),
            percent(row["agreement_at_half"]),
            real(row["z"], 1),
        )
        for row in _records(calibration.rules)
    ]
    columns = ("rule", "threshold", "positives", "agreement", "at 0.5", "z of the difference")
    words = "Agreement with the experts, cross-validated and weighted; z below −2 is worse than 0.5 beyond noise."
    return numbers(columns, rows, "What other rules would give", words)


def _expert_table(calibration: Calibration) -> Table:
    rows = [
        (
            named(row["expert"]),
            amount(row["n_labels"]),
            amount(row["n_unsure"]),
            percent(row["positive_rate"]),
            real(row["kappa_with_others"]),
            real(row["kappa_with_crowd"]),
            real(row["threshold_without"], 4),
        )
        for row in _records(calibration.experts)
    ]
    columns = ("expert", "labels", "unsure", "positive", "kappa with others", "kappa with labels", "threshold without")
    return replace(numbers(columns, rows, "Experts"), rest="also in experts_summary.csv")


def _agreement_table(found: Agreement) -> Table:
    rows: list[tuple[str, Cell]] = [("alpha of all", interval(found.alpha, found.interval.low, found.interval.high))]
    rows += [
        (
            f"kappa of {named(pair['rater_a']).text} and {named(pair['rater_b']).text}",
            interval(pair["kappa"], pair["kappa_lo"], pair["kappa_hi"]),
        )
        for pair in _records(found.kappas)
    ]
    words = "Alpha counts all experts, kappa two of them."
    return numbers(("agreement", "value"), rows, "Agreement among the experts", words)
