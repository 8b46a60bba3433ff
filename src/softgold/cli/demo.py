"""`softgold demo`: the whole path on the sample data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgold.cli.common import Force, Quiet, say
from softgold.errors import InputError, SoftgoldWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from softgold.evaluation import Evaluation
    from softgold.experts import Calibration
    from softgold.models.base import Posterior


def command(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write the results to.")
    ] = Path("demo_run"),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole path on the sample data.

    Fits the votes of a small simulated study, calibrates the labels with its experts, judges five simulated detectors,
    and writes the report.
    """
    from softgold.output import atomic_directory
    from softgold.runs import report_path

    with atomic_directory(output, force=force) as folder:
        telling = run_study(samples_folder(), folder, title=output.name, quiet=quiet)
    say("", quiet=quiet)
    for line in telling:
        say(line, quiet=quiet)
    say(f"report: {report_path(output)}", quiet=quiet)


def run_study(samples: Path, folder: Path, *, title: str = "demo", quiet: bool = False) -> list[str]:
    """Take a study with a known truth from votes to report in an empty folder, and return the main results.

    Args:
        samples: Folder with `votes.csv, experts.csv, scores.csv, truth.csv` and `annotators_truth.csv`.
        folder: Where to write the run.
        title: Name of the run in the report.
        quiet: Print nothing.
    """
    from softgold.evaluation import evaluate
    from softgold.experts import calibrate
    from softgold.models.base import fit
    from softgold.readers import read_experts, read_scores, read_votes
    from softgold.report import write_report
    from softgold.runs import open_run

    votes = read_votes(samples / "votes.csv")
    say(
        f"1/5 votes      {votes.n_votes:,} on {votes.n_items:,} items by {votes.n_annotators:,} annotators", quiet=quiet
    )
    with warnings.catch_warnings():
        # Fit and calibration keep what they warn of; the report shows it.
        warnings.simplefilter("ignore", SoftgoldWarning)
        fitted = fit(votes)
        fitted.save(folder, source="votes.csv of the sample data", force=True)
        run = open_run(folder)
        say(f"2/5 fit        {fitted.diagnostics.reason} ({fitted.diagnostics.seconds:.1f} s)", quiet=quiet)
        labels = fitted.posterior.soft_labels()
        experts = read_experts(samples / "experts.csv")
        calibrated = calibrate(labels, experts)
    run.add(calibrated, inputs=[samples / "experts.csv"])
    asked = f"{len(experts.item_ids):,} items by {len(experts.expert_ids)} experts"
    say(f"3/5 experts    {asked}: threshold {calibrated.threshold:.3f}", quiet=quiet)
    judged = evaluate(labels, read_scores(samples / "scores.csv"), labels=calibrated.labels)
    run.add(judged, inputs=[samples / "scores.csv"])
    say(f"4/5 detectors  {len(judged.models)} judged against hard and soft labels", quiet=quiet)
    write_report(folder, title=title)
    say("5/5 report", quiet=quiet)
    return [
        _labels_line(samples, labels.majority, calibrated),
        _adversaries_line(samples, fitted.posterior),
        _ranking_line(judged),
    ]


def _labels_line(samples: Path, majority: ArrayLike, calibrated: Calibration) -> str:
    """Compare released labels and majority with the truth; a tie is wrong half of the time."""
    import numpy as np
    import pandas as pd

    frame = pd.read_csv(samples / "truth.csv", dtype={"item": "str"})
    truth = frame.set_index("item")["label"].reindex(calibrated.labels.item_ids).to_numpy(dtype=float)
    by_majority, released = (np.abs(np.asarray(found) - truth).mean() for found in (majority, calibrated.labels.label))
    return f"wrong labels:       {by_majority:.1%} by majority vote, {released:.1%} as released"


def _adversaries_line(samples: Path, posterior: Posterior) -> str:
    import pandas as pd

    kinds = pd.read_csv(samples / "annotators_truth.csv", dtype={"annotator": "str"}).set_index("annotator")["kind"]
    table = posterior.annotators()
    named = table.loc[table["p_adversarial"] > 0.95, "annotator"]
    found = int((kinds.reindex(named) == "adversarial").sum())
    others = f"; {len(named) - found} other named" if len(named) > found else "; nobody else named"
    return f"adversaries found:  {found} of {(kinds == 'adversarial').sum()}{others}"


def _ranking_line(judged: Evaluation) -> str:
    from softgold.evaluation.words import lead_words

    return f"ranking:            {lead_words(judged.only.comparisons[0].best_soft, 'soft AUROC')}"


def samples_folder() -> Path:
    """Return the folder of the sample data: beside the package when installed, else in the repository."""
    package = Path(__file__).parents[1]
    for folder in (package / "data_samples", package.parents[1] / "data_samples"):
        if folder.is_dir():
            return folder
    raise InputError("the sample data are not installed with this copy of softgold; run 'softgold simulate' instead")
