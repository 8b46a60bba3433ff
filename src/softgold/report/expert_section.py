"""The section on experts: their answers bin by bin, the threshold, how sure it is, and how far they agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softgold.report.blocks import Cell, Figure, Panel, Section, Table, amount, interval, named, numbers, percent, real
from softgold.report.plots import Mark, Spread, curve, histogram, points_with_intervals

__all__ = ["expert_section"]

SOURCES = {"panel": "other experts", "items": "other items", "both": "other experts and items"}


def expert_section(calibration: Mapping[str, Any]) -> Section:
    """Show what the experts said, and the threshold that follows."""
    threshold = float(calibration["threshold"])
    figures = [_rates_figure(calibration, threshold), _sensitivity_figure(calibration, threshold)]
    panel = calibration["intervals"].get("both") or calibration["intervals"].get("panel")
    if panel is not None:
        figures.append(_threshold_figure(panel, threshold))
    tables = [_quality_table(calibration), _interval_table(calibration), _expert_table(calibration)]
    before, after = calibration["before"], calibration["after"]
    words = (
        f"Experts looked at {calibration['n_labelled']:,} items; the threshold {threshold:.4f} is where their "
        f"positives begin. It labels {after['positives']:,} items positive ({after['prevalence']:.1%}), against "
        f"{before['positives']:,} at 0.5, and agrees with the experts on {after['agreement']:.1%} of their items, "
        f"against {before['agreement']:.1%}."
    )
    if calibration["agreement"] is not None:
        tables.append(_agreement_table(calibration["agreement"]))
        words += f" {_alpha_words(calibration['agreement'])}"
    notes = tuple(str(words) for words in calibration.get("warnings", ()))
    return Section("experts", "Experts and the threshold", words, (Panel(tuple(figures), tuple(tables), notes),))


def _alpha_words(found: Mapping[str, Any]) -> str:
    span = found.get("interval")
    ends = "" if not span else f" ({span['low']:.2f} to {span['high']:.2f})"
    return (
        f"The experts agree among themselves with a Krippendorff alpha of {found['alpha']:.2f}{ends}, which is called "
        f"{found['landis_koch']}; 1 is full agreement, 0 is chance."
    )


def _rates_figure(calibration: Mapping[str, Any], threshold: float) -> Figure:
    bins = [row for row in calibration["bins"] if row["labelled"] and row["rate"] is not None]
    values = [
        Spread(
            row["p_mean"],
            row["rate"],
            row["rate_lo"],
            row["rate_hi"],
            f"bin {row['bin']}: {row['positives']:.0f} of {row['labelled']:.0f} positive",
        )
        for row in bins
    ]
    told = f"{len(bins)} bins with expert labels; the threshold is {threshold:.3f}."
    return Figure(
        "What experts call positive",
        "Each dot is a bin of items with similar soft labels: across, their mean soft label; upwards, the share that "
        "the experts called positive, with a 95 % interval. If the crowd were calibrated, the dots would follow the "
        f"dashed diagonal. {told}",
        points_with_intervals(
            values,
            x_title="mean soft label of the bin",
            y_title="experts' share of positives",
            marks=[Mark(threshold, f"threshold {threshold:.2f}")],
            title="What experts call positive",
            description=told,
        ),
        numbers(
            ("bin", "mean p", "labelled", "positive", "share", "interval"),
            [
                (
                    amount(row["bin"]),
                    real(row["p_mean"]),
                    amount(row["labelled"]),
                    amount(row["positives"]),
                    real(row["rate"]),
                    Cell(f"{row['rate_lo']:.3f} – {row['rate_hi']:.3f}", row["rate_lo"]),
                )
                for row in bins
            ],
        ),
    )


def _sensitivity_figure(calibration: Mapping[str, Any], threshold: float) -> Figure:
    rows = calibration["sensitivity"]
    shares = [row["prevalence"] for row in rows]
    told = (
        f"Between thresholds {rows[0]['threshold']:.2f} and {rows[-1]['threshold']:.2f} the share of positives goes "
        f"from {max(shares):.1%} to {min(shares):.1%}."
    )
    return Figure(
        "If the threshold were another",
        "The share of items that would be labelled positive. A flat curve means that the choice matters little. "
        f"{told}",
        curve(
            [(row["threshold"], row["prevalence"]) for row in rows],
            x_title="threshold",
            y_title="labelled positive",
            marks=[Mark(threshold, f"chosen {threshold:.2f}")],
            from_zero=True,
            percent=True,
            title="If the threshold were another",
            description=told,
        ),
        numbers(
            ("threshold", "positives", "share"),
            [(real(row["threshold"]), amount(row["positives"]), percent(row["prevalence"])) for row in rows],
        ),
    )


def _threshold_figure(found: Mapping[str, Any], threshold: float) -> Figure:
    """Draw how likely each threshold is when experts and items are drawn anew, as shares of 1,000 draws."""
    values, chance = found["thresholds"], found["probability"]
    edges = [place / 40 for place in range(41)]
    counts = [0.0] * 40
    for value, share in zip(values, chance, strict=True):
        counts[min(int(value * 40), 39)] += 1000 * share
    told = f"{100 * found['level']:g} % of the draws lie between {found['low']:.3f} and {found['high']:.3f}."
    return Figure(
        "How sure the threshold is",
        f"Thresholds that {SOURCES.get(found['source'], 'another draw')} of the same kind would have given, in 1,000 "
        f"draws. {told} That is {found['positives_low']:,} to {found['positives_high']:,} positives.",
        histogram(
            edges,
            [round(count) for count in counts],
            x_title="threshold",
            y_title="draws of 1,000",
            marks=[Mark(threshold, f"chosen {threshold:.2f}")],
            title="How sure the threshold is",
            description=told,
        ),
        numbers(
            ("threshold", "share of draws"),
            [(real(value), percent(share)) for value, share in zip(values, chance, strict=True)],
        ),
    )


def _quality_table(calibration: Mapping[str, Any]) -> Table:
    before, after = calibration["before"], calibration["after"]
    rows = (
        ("threshold", real(before["threshold"], 4), real(after["threshold"], 4)),
        ("positives", amount(before["positives"]), amount(after["positives"])),
        ("share of positives", percent(before["prevalence"]), percent(after["prevalence"])),
        ("wrong labels to expect, by p", percent(before["expected_wrong"], 2), percent(after["expected_wrong"], 2)),
        (
            "wrong labels to expect, by p_calibrated",
            percent(before["expected_wrong_calibrated"], 2),
            percent(after["expected_wrong_calibrated"], 2),
        ),
        ("agreement with the experts", percent(before["agreement"]), percent(after["agreement"])),
        ("Cohen's kappa with the experts", real(before["kappa"]), real(after["kappa"])),
    )
    table = numbers(("labels", "cut at 0.5", "cut at the threshold"), rows)
    return Table(table.columns, table.rows, "Labels before and after")


def _interval_table(calibration: Mapping[str, Any]) -> Table:
    rows = [
        (
            f"with {SOURCES.get(name, name)}",
            Cell(f"{found['low']:.4f} – {found['high']:.4f}", found["low"]),
            Cell(f"{found['positives_low']:,} – {found['positives_high']:,}", found["positives_low"]),
            Cell("all cases enumerated" if found["exact"] else f"{found['replicates']:,} resamples"),
        )
        for name, found in calibration["intervals"].items()
    ]
    table = numbers(("had we asked", "threshold", "positives", "how"), rows)
    return Table(table.columns, table.rows, "How far the threshold could move")


def _expert_table(calibration: Mapping[str, Any]) -> Table:
    rows = [
        (
            named(row["expert"]),
            amount(row["n_labels"]),
            percent(row["positive_rate"]),
            real(row["kappa_with_others"]),
            real(row["kappa_with_crowd"]),
            real(row["threshold_without"], 4),
        )
        for row in calibration["experts"]
    ]
    columns = ("expert", "labels", "positive", "kappa with others", "kappa with labels", "threshold without")
    table = numbers(columns, rows)
    return Table(table.columns, table.rows, "Experts", rest="also in experts_summary.csv")


def _agreement_table(found: Mapping[str, Any]) -> Table:
    rows: list[tuple[str, Cell]] = [("alpha of all", interval(found["alpha"], *_ends(found.get("interval"))))]
    rows += [
        (
            f"kappa of {named(pair['rater_a']).text} and {named(pair['rater_b']).text}",
            interval(pair["kappa"], pair["kappa_lo"], pair["kappa_hi"]),
        )
        for pair in found.get("kappas", ())
    ]
    table = numbers(("agreement", "value"), rows)
    return Table(
        table.columns, table.rows, "Agreement among the experts", "Alpha counts all experts, kappa two of them."
    )


def _ends(span: Mapping[str, Any] | None) -> tuple[float | None, float | None]:
    return (None, None) if not span else (span["low"], span["high"])
