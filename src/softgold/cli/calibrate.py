"""`softgold calibrate`: calibrated soft labels, a threshold and labels from the answers of experts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    AsJson,
    Force,
    GroupColumn,
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

RuleName = Literal[
    "map", "bins", "paper", "changepoint", "largest_jump", "onset", "f1", "youden", "precision", "recall"
]  # fmt: skip


def command(
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
        Literal["all", "sampled"], typer.Option(help="Soft label of a bin: mean of all its items, or of the labelled.")
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
    group_col: GroupColumn = None,
    items: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="Table with item and group; else items.csv beside the data."),
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
    from softgold.cli.studies import calibrate_study
    from softgold.experts import calibrate as run_calibration
    from softgold.experts import read_answers, read_key
    from softgold.output import check_target
    from softgold.readers import read_scores
    from softgold.runs import Study, is_study, open_run, open_study
    from softgold.runs.limits import check_memory
    from softgold.runs.results import RESULTS, plain_result

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
        "groups": _read_groups(run, group_col, items, experts, item_col),
        "ignore_unknown": ignore_unknown,
        "n_bootstrap": n_bootstrap,
        "level": level,
        "seed": seed,
    }
    columns = {"item": item_col, "annotator": annotator_col, "vote": vote_col}
    several, kind = is_study(run), RESULTS["calibration"]
    if not several:
        check_memory(run, "calibrate")
    opened = open_study(run) if several else open_run(run)
    # Say now, before long work, if the result could not be written.
    for name in [kind.tables["labels"]] if several else kind.files:
        check_target(run / name, force=force)
    if isinstance(opened, Study):
        results = calibrate_study(opened, experts, columns, key, quiet=quiet, **options)
        add = partial(opened.add, results)
    else:
        sample = None if key is None else read_key(key)
        result = run_calibration(opened.brief_labels, read_answers(experts, **columns), sample=sample, **options)
        results, add = {"": result}, partial(opened.add, result)
    worse = [name for name, result in results.items() if result.comparison.is_worse]
    if strict and worse:
        where = f"{worse[0]}: " if worse[0] else ""
        raise InputError(f"nothing was written, because of --strict: {where}{results[worse[0]].warnings[0]}")
    groups = next(iter(results.values())).settings.group_name if several else ""
    if groups:
        say(f"bootstraps redraw whole groups ({groups})", quiet=quiet)
    written = add(inputs=experts, force=force)
    if as_json:
        plain = {name: plain_result(result) for name, result in results.items()}
        print_json(plain if several else plain[""])
        return
    say("\n".join(_study_lines(results) if several else _lines(results[""])), quiet=quiet)
    say(f"written: {', '.join(map(str, written))}", quiet=quiet)


def _read_groups(run: Path, group: str | None, items: Path | None, experts: list[Path], item: str | None) -> Any:
    """Read the groups from the table of items, the answers, or the table that the votes came from."""
    from softgold.cli.studies import read_group_column
    from softgold.runs import is_study, open_run, open_study

    if group is None:
        return None
    first = next(iter(open_study(run).tasks.values())) if is_study(run) else open_run(run)
    votes = Path(first.record.input.source or "-")
    folders = dict.fromkeys([run, votes.parent, *(path.parent for path in experts)])
    return read_group_column(group, items, list(folders), [*experts, votes], item)


def _study_lines(results: dict[str, Calibration]) -> list[str]:
    width = max(len(name) for name in results)
    lines = []
    for name, result in results.items():
        agreement = f"agreement {_agreement(result.after)}, {_agreement(result.before)} at 0.5"
        positives = f"{result.after.positives:,} positives"
        lines.append(f"{name:<{width}}  threshold {result.threshold:.4f}, {positives}, {agreement}")
    return lines


def _cost(text: str) -> tuple[float, float]:
    parts = text.split(":")
    try:
        false_positive, false_negative = (float(part) for part in parts)
    except ValueError:
        raise UsageError(f"--cost must be two numbers, FP:FN, such as 1:5; got {text!r}") from None
    return false_positive, false_negative


def _lines(result: Calibration) -> list[str]:
    before, after, interval = result.before, result.after, result.interval("both")
    span = f"{interval.low:.4f} to {interval.high:.4f}"
    positives = f"{interval.positives_low:,} to {interval.positives_high:,} positives"
    lines = [
        f"threshold {result.threshold:.4f} by rule {result.rule.name}",
        f"{100 * interval.level:g} % interval over experts and {result.settings.redrawn} {span}, that is {positives}",
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
