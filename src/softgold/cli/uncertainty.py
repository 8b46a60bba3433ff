"""`softgold uncertainty`: how good a segmentation model's uncertainty is, on a folder of cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import AsJson, Force, Output, Quiet, Seed, print_json, progress, say

if TYPE_CHECKING:
    from softgold.imaging.segmentation import CaseFile, SegmentationStudy, StudySettings

MARKER = "uncertainty.json"

RolesChoice = Literal["bayesian", "ambiguity"]


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Cases: NAME.npz with probabilities (samples, classes, space ...) and masks (raters, space ...), "
            "or NAME.npy and NAME_masks.npy.",
        ),
    ],
    output: Output,
    splits: Annotated[
        str | None,
        typer.Option(
            "--splits", metavar="FILE", help="Table case, split: validation, iid or ood; all iid if left out."
        ),
    ] = None,
    roles: Annotated[
        RolesChoice,
        typer.Option(help="Bayesian: samples of an unknown model. Ambiguity: of a model that learnt its raters (SSN)."),
    ] = "bayesian",
    patch_size: Annotated[int, typer.Option(min=1, help="Length of the patch along each axis.")] = 10,
    n_bins: Annotated[int, typer.Option("--bins", min=1, help="Bins of the calibration error.")] = 20,
    platt: Annotated[
        Literal["pooled", "legacy"], typer.Option(help="One calibration of all pixels, or the mean of one per image.")
    ] = "pooled",
    maps: Annotated[bool, typer.Option("--maps", help="Write the uncertainty maps of each case too.")] = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Judge the uncertainty of a segmentation model.

    Writes uncertainty.json, cases.csv (one row per case) and tasks.csv (one row per task, metric and measure).
    """
    from softgold.imaging.segmentation import StudySettings, case_files, evaluate_cases
    from softgold.output import check_target

    check_target(output, force=force, directory=True, marker=MARKER)
    files = case_files(folder, splits)
    settings = StudySettings(roles, patch_size, n_bins, platt, seed)
    with progress("cases", 2 * len(files), quiet=quiet) as advance:
        study = evaluate_cases(files, settings, progress=advance)
    _write(output, folder, files if maps else (), study, force)
    if as_json:
        print_json(_summary(folder, study))
    _tell(study, output, quiet)


def _write(output: Path, folder: Path, files: Sequence[CaseFile], study: SegmentationStudy, force: bool) -> None:
    from softgold.output import atomic_directory, write_json, write_table

    with atomic_directory(output, force=force, marker=MARKER) as target:
        write_json(_summary(folder, study), target / MARKER)
        write_table(study.cases, target / "cases.csv")
        write_table(study.tasks, target / "tasks.csv")
        if files:
            (target / "maps").mkdir()
        for file in files:
            _write_maps(file, study.settings, target / "maps" / f"{file.name}.npz")


def _write_maps(file: CaseFile, settings: StudySettings, path: Path) -> None:
    import numpy as np

    from softgold.imaging.segmentation import CaseMaps

    entropies = CaseMaps.of(file.load(), settings.roles).entropies
    np.savez_compressed(
        path,
        predictive_entropy=entropies.predictive_entropy.astype(np.float32),
        expected_entropy=entropies.expected_entropy.astype(np.float32),
        mutual_information=entropies.mutual_information.astype(np.float32),
    )


def _summary(folder: Path, study: SegmentationStudy) -> dict[str, object]:
    from softgold import __version__

    return {
        "softgold": __version__,
        "input": folder,
        "settings": study.settings,
        "n_cases": study.cases["split"].value_counts().to_dict(),
        "fitted_on": study.fitted_on,
        "thresholds": study.thresholds,
        "platt": study.platt,
        "tasks": study.tasks.to_dict(orient="records"),
    }


def _tell(study: SegmentationStudy, output: Path, quiet: bool) -> None:
    counts = ", ".join(f"{count} {split}" for split, count in study.cases["split"].value_counts().items())
    say(f"cases: {counts}; threshold and calibration from {study.fitted_on}", quiet=quiet)
    for (task, metric, split), rows in study.tasks.groupby(["task", "metric", "split"], sort=False):
        values = "  ".join(
            f"{' '.join(part for part in (row['measure'], row['aggregation']) if part)} {row['value']:.4f}".strip()
            for _, row in rows.iterrows()
        )
        say(f"{task}, {metric}, {split}: {values}", quiet=quiet)
    say(f"written: {output}", quiet=quiet)
