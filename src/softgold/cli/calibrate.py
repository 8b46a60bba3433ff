"""`softgold calibrate`: labels with a threshold that experts have calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    from softgold.experts import Calibration
    from softgold.runs import Run
    from softgold.tables.experts import ExpertLabels

__all__ = ["register"]

RuleName = Literal["changepoint", "largest_jump", "onset", "f1", "youden", "precision", "recall"]


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
            help="Labels of the experts: item, annotator, label; or item, label, once for each expert's file.",
        ),
    ],
    rule: Annotated[RuleName, typer.Option(help="How the threshold is drawn.")] = "changepoint",
    target: Annotated[
        float | None, typer.Option(help="Precision or recall to reach, with --rule of that name.")
    ] = None,
    of: Annotated[
        Literal["all", "sampled"], typer.Option(help="Mean soft label of all items of the bin, or of the labelled.")
    ] = "all",
    tie: Annotated[
        Literal["negative", "positive"], typer.Option(help="Label when the experts are evenly split.")
    ] = "negative",
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Key that sample-experts wrote, with bins and weights.")
    ] = None,
    bins: Annotated[int | None, typer.Option(help="Number of bins, 20 if left out; not with --key.")] = None,
    scheme: Annotated[
        Literal["rank", "width"] | None, typer.Option(help="How bins are cut, rank if left out; not with --key.")
    ] = None,
    soft_map: Annotated[
        Literal["auto", "logit", "isotonic"], typer.Option("--map", help="Map from p to p_calibrated.")
    ] = "auto",
    scores: Annotated[
        Path | None, typer.Option("--scores", metavar="FILE", help="Scores of detectors to judge: item, one a column.")
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Go on without labels of items that the run lacks.")
    ] = False,
    replicates: Annotated[int, typer.Option(help="Resamples for each bootstrap.")] = 2000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Choose a threshold from expert labels.

    Writes labels.csv, calibration.json (threshold, bins, intervals, sensitivity, agreement) and experts_summary.csv
    into the run directory.
    """
    opened = _open(run, force)
    if key is not None and (bins is not None or scheme is not None):
        raise UsageError("--bins and --scheme are in the --key already; leave them out")
    from softgold.experts import calibrate as run_calibration
    from softgold.experts.sampling import read_key
    from softgold.readers import read_scores
    from softgold.runs.results import plain_result

    result = run_calibration(
        opened.soft_labels,
        _read_experts(experts, item_col, annotator_col, vote_col),
        rule=rule,
        target=target,
        of=of,
        tie=tie,
        sample=None if key is None else read_key(key),
        bins=20 if bins is None else bins,
        scheme="rank" if scheme is None else scheme,
        soft_map=soft_map,
        scores=None if scores is None else read_scores(scores),
        ignore_unknown=ignore_unknown,
        replicates=replicates,
        level=level,
        seed=seed,
    )
    written = opened.add(result, inputs=experts, force=force)
    if as_json:
        print_json(plain_result(result))
    else:
        say("\n".join(_lines(result)), quiet=quiet)
        say(f"written: {', '.join(map(str, written))}", quiet=quiet)


def _open(run: Path, force: bool) -> Run:
    """Open the run, and say now, before long work, if the result could not be written."""
    from softgold.output import check_target
    from softgold.runs import open_run
    from softgold.runs.results import RESULTS

    opened = open_run(run)
    for name in RESULTS["calibration"].files:
        check_target(run / name, force=force)
    return opened


def _read_experts(paths: list[Path], item: str | None, annotator: str | None, vote: str | None) -> ExpertLabels:
    """Read one file of several experts, or several files, in which an expert without a name takes the file's."""
    import pandas as pd

    from softgold.readers import read_experts

    read = [read_experts(path, item=item, annotator=annotator, vote=vote) for path in paths]
    if len(read) == 1:
        return read[0]
    silent = [name for labels in read for name in labels.table.abstained_annotators]
    if silent:
        raise InputError(f"expert {silent[0]!r} has no labels; leave out the experts who gave none")
    frames = [labels.table.to_frame() for labels in read]
    for path, frame in zip(paths, frames, strict=True):
        if (frame["annotator"] == "expert").all():
            frame["annotator"] = path.name.split(".")[0]
    return read_experts(pd.concat(frames, ignore_index=True))


def _lines(result: Calibration) -> list[str]:
    before, after, interval = result.before, result.after, result.interval("both")
    span = f"[{interval.low:.4f}, {interval.high:.4f}]"
    positives = f"{interval.positives_low:,} to {interval.positives_high:,} positives"
    lines = [
        f"threshold {result.threshold:.4f} by {result.rule.name}",
        f"{100 * interval.level:g} % interval over experts and items {span}, that is {positives}",
        f"positives {after.positives:,} ({100 * after.prevalence:.1f} %); {before.positives:,} at 0.5",
        f"agreement with the experts {100 * after.agreement:.1f} %; {100 * before.agreement:.1f} % at 0.5",
        f"wrong labels to expect by p {100 * after.expected_wrong:.2f} %; {100 * before.expected_wrong:.2f} % at 0.5",
    ]
    among, fit = result.agreement, result.soft_map.fit
    if among is not None:
        lines.append(f"alpha of the experts {among.alpha:.3f}: {among.landis_koch}, {among.reliability}")
    if fit is not None:
        losses = f"{fit.log_loss_before:.4f} -> {fit.log_loss_after[fit.name]:.4f} (cross-validated)"
        lines.append(f"p_calibrated by the {fit.name} map: log loss against the experts {losses}")
    return lines
