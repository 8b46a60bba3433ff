"""`softgold demo`: the whole path on the sample data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgold.cli.common import Force, Quiet, say
from softgold.errors import InputError

if TYPE_CHECKING:
    from softgold.softlabels import SoftLabels

__all__ = ["register", "samples_folder"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write the results to.")
    ] = Path("demo_run"),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole path on the sample data.

    Reads a small simulated study, computes both baselines, and writes the soft labels.
    """
    from softgold import __version__
    from softgold.baselines import Majority, Mean
    from softgold.output import atomic_directory, write_json, write_table
    from softgold.readers import read_votes

    with atomic_directory(output, force=force) as folder:
        votes = read_votes(samples_folder() / "votes.csv")
        say(str(votes.describe()), quiet=quiet)
        majority, mean = Majority().aggregate(votes), Mean().aggregate(votes)
        write_table(mean.to_frame(), folder / "soft_labels.csv")
        settings = {"command": "demo", "version": __version__, "method": mean.method, "warnings": votes.notes}
        write_json(settings, folder / "run.json")
    for labels in (majority, mean):
        say(_summary(labels), quiet=quiet)
    say(f"results: {output}/soft_labels.csv", quiet=quiet)


def _summary(labels: SoftLabels) -> str:
    """Say how an aggregator did, against the truth that the simulator knows."""
    from softgold.readers import read_experts

    truth = read_experts(samples_folder() / "truth.csv")
    position = labels.item_ids.get_indexer(truth.item_ids[truth.item_codes])
    known = position >= 0
    p, true = labels.p[position[known]], truth.labels[known]
    brier = ((p - true) ** 2).mean()
    unsure = (labels.uncertainty > 0.25).mean()
    return f"{labels.method:<9} squared distance to the truth {brier:.3f}, items with uncertainty > 0.25: {unsure:.1%}"


def samples_folder() -> Path:
    """Return the folder of the sample data: beside the package when installed, else in the repository."""
    package = Path(__file__).parents[1]
    for folder in (package / "data_samples", package.parents[1] / "data_samples"):
        if folder.is_dir():
            return folder
    raise InputError("the sample data are not installed with this copy of softgold; run 'softgold simulate' instead")
