"""`softgold calibrate`: calibrated soft labels, a threshold and labels from the answers of experts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    AsJson,
    Force,
    ItemColumn,
    Quiet,
    Seed,
    VoteColumn,
    print_json,
    say,
)
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    from softgold.experts import Calibration, LabelQuality
    from softgold.runs import Run

__all__ = ["register"]

RuleName = Literal[
    "map", "bins", "paper", "changepoint", "largest_jump", "onset", "f1", "youden", "precision", "recall"
]  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate)


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory with soft_labels.csv in it.")],
    experts: Annotated[
        list[Path],
        typer.Option(
            "--experts",
            metavar="FILE",
            help="Answers of the experts: item, expert, answer; or item, answer, one file per expert. CSV or Excel.",
        ),
    ],
    rule: Annotated[RuleName, typer.Option(help="How the threshold is chosen.")] = "map",
    cost: Annotated[
        str | None,
        typer.Option(metavar="FP:FN", help="Costs of a false positive and a false negative, with rule map or bins."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Precision or recall to reach, with the rule of that name.")
    ] = None,
    of: Annotated[
        Literal["all", "sampled"], typer.Option(help="Mean soft label of all items of the bin, or of the labelled.")
    ] = "all",
    tie: Annotated[
        Literal["negative", "positive"], typer.Option(help="Label when the experts are evenly split.")
    ] = "negative",
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="Key that sample-experts wrote, with strata and weights."),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="Number of bins; by default one per 10 labels, at most 20. Not with --key.")
    ] = None,
    scheme: Annotated[
        Literal["rank", "width"] | None, typer.Option(help="How bins are cut, rank by default. Not with --key.")
    ] = None,
    soft_map: Annotated[
        Literal["logit", "isotonic", "auto"], typer.Option("--map", help="Map from p to p_calibrated.")
    ] = "logit",
    scores: Annotated[
        Path | None,
        typer.Option("--scores", metavar="FILE", help="Scores of detectors to judge: item, one column per detector."),
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Go on without answers about items that the run lacks.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 2 if labels at the threshold are worse than labels cut at 0.5.")
    ] = False,
    n_bootstrap: Annotated[int, typer.Option("--n-bootstrap", help="Resamples for each bootstrap.")] = 2000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Calibrate labels with the answers of experts.

    Writes labels.csv (label, p_calibrated and its band), calibration.json (threshold, bins, intervals, error rates,
    agreement) and experts_summary.csv into the run directory. Any number of answers will do.
    """
    if key is not None and (bins is not None or scheme is not None):
        raise UsageError("--bins and --scheme are in the --key already; leave them out")
    from softgold.experts import calibrate as run_calibration
    from softgold.experts import read_answers, read_key
    from softgold.readers import read_scores
    from softgold.runs import is_study
    from softgold.runs.results import plain_result

    options: dict[str, Any] = {
        "rule": rule,
        "cost": None if cost is None else _cost(cost),
        "target": target,
        "of": of,
        "tie": tie,
        "bins": bins,
        "scheme": "rank" if scheme is None else scheme,
        "soft_map": soft_map,
        "scores": None if scores is None else read_scores(scores),
        "ignore_unknown": ignore_unknown,
        "n_bootstrap": n_bootstrap,
        "level": level,
        "seed": seed,
    }
    columns = {"item": item_col, "annotator": annotator_col, "vote": vote_col}
    if is_study(run):
        _calibrate_study(run, experts, columns, key, options, strict=strict, force=force, quiet=quiet, as_json=as_json)
        return
    opened = _open(run, force)
    sample = None if key is None else read_key(key)
    result = run_calibration(opened.soft_labels, read_answers(experts, **columns), sample=sample, **options)
    if strict and result.comparison.is_worse:
        raise InputError(f"nothing was written, because of --strict: {result.warnings[0]}")
    written = opened.add(result, inputs=experts, force=force)
    if as_json:
        print_json(plain_result(result))
    else:
        say("\n".join(_lines(result)), quiet=quiet)
        say(f"written: {', '.join(map(str, written))}", quiet=quiet)


def _calibrate_study(
    run: Path,
    experts: list[Path],
    columns: dict[str, str | None],
    key: Path | None,
    options: dict[str, Any],
    *,
    strict: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from softgold.cli.studies import calibrate_study
    from softgold.output import check_target
    from softgold.runs import open_study
    from softgold.runs.results import RESULTS, plain_result

    study = open_study(run)
    check_target(run / RESULTS["calibration"].tables["labels"], force=force)
    results = calibrate_study(study, experts, columns, key, quiet=quiet, **options)
    worse = [name for name, result in results.items() if result.comparison.is_worse]
    if strict and worse:
        raise InputError(f"nothing was written, because of --strict: {worse[0]}: {results[worse[0]].warnings[0]}")
    written = study.add(results, inputs=experts, force=force)
    if as_json:
        print_json({name: plain_result(result) for name, result in results.items()})
        return
    width = max(len(name) for name in results)
    for name, result in results.items():
        agreement = f"agreement {_agreement(result.after)}, {_agreement(result.before)} at 0.5"
        positives = f"{result.after.positives:,} positives"
        say(f"{name:<{width}}  threshold {result.threshold:.4f}, {positives}, {agreement}", quiet=quiet)
    say(f"written: {', '.join(map(str, written))}", quiet=quiet)


def _cost(text: str) -> tuple[float, float]:
    parts = text.split(":")
    try:
        false_positive, false_negative = (float(part) for part in parts)
    except ValueError:
        raise UsageError(f"--cost must be two numbers, FP:FN, such as 1:5; got {text!r}") from None
    return false_positive, false_negative


def _open(run: Path, force: bool) -> Run:
    """Open the run, and say now, before long work, if the result could not be written."""
    from softgold.output import check_target
    from softgold.runs import open_run
    from softgold.runs.results import RESULTS

    opened = open_run(run)
    for name in RESULTS["calibration"].files:
        check_target(run / name, force=force)
    return opened


def _lines(result: Calibration) -> list[str]:
    before, after, interval = result.before, result.after, result.interval("both")
    span = f"{interval.low:.4f} to {interval.high:.4f}"
    positives = f"{interval.positives_low:,} to {interval.positives_high:,} positives"
    lines = [
        f"threshold {result.threshold:.4f} by rule {result.rule.name}",
        f"{100 * interval.level:g} % interval over experts and items {span}, that is {positives}",
        f"positives {after.positives:,} ({100 * after.prevalence:.1f} %); {before.positives:,} at 0.5",
        f"agreement with the experts {_agreement(after)}; {_agreement(before)} at 0.5 (cross-validated, weighted)",
        f"wrong labels to expect by p_calibrated {_wrong(after)}; {_wrong(before)} at 0.5",
    ]
    among, fit = result.agreement, result.soft_map
    if among is not None:
        lines.append(f"alpha of the experts {among.alpha:.3f}: {among.landis_koch}, {among.reliability}")
    losses = fit.log_loss
    lines.append(
        f"log loss against the experts (cross-validated): p {losses.p:.4f}, logit map {losses.logit:.4f}, isotonic "
        f"{losses.isotonic:.4f}; p_calibrated is by the {fit.name} map"
    )
    lines.append(f"for the data sheet: {result.error_rates.sentence}")
    return [line.replace("nan %", "unknown").replace(" nan", " unknown") for line in lines]


def _wrong(quality: LabelQuality) -> str:
    return f"{100 * quality.expected_wrong_calibrated:.2f} %"


def _agreement(quality: LabelQuality) -> str:
    return f"{100 * quality.agreement:.1f} %"
