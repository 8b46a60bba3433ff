"""`softgold convergence`: how high a model can score before it fits one annotator's habits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import AnnotatorColumn, AsJson, Force, Output, Quiet, Seed, print_json, progress, say
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.imaging.detection.convergence import Convergence
    from softgold.imaging.detection.variation import Variation

MARKER = "convergence.json"
MOST_THRESHOLDS = 1000


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="COCO JSON with a rater on each annotation, or a table image, annotator, category, x, y, w, h.",
        ),
    ],
    output: Output,
    masks: Annotated[bool, typer.Option("--masks", help="Compare the segmentations of COCO JSON, not boxes.")] = False,
    iou: Annotated[
        str, typer.Option("--iou", metavar="LOW:STEP:HIGH", help="Overlap thresholds; or a list with commas.")
    ] = "0.5:0.05:0.95",
    confidence: Annotated[
        Literal["tied", "coco"],
        typer.Option(help="Tied: free of the order of annotations. Coco: in file order, for reproduction."),
    ] = "tied",
    alpha: Annotated[
        Literal["mean_image", "pooled"], typer.Option(help="Alpha per image, averaged; or of all units together.")
    ] = "mean_image",
    empty: Annotated[
        Literal["one", "skip"], typer.Option(help="An image on which no rater drew: full agreement, or left out.")
    ] = "one",
    legacy: Annotated[bool, typer.Option("--legacy", help="Alpha as the published code computes it.")] = False,
    fraction: Annotated[float, typer.Option(help="Share of the images in a subset.")] = 0.1,
    subsets: Annotated[int, typer.Option(min=2, help="Number of subsets.")] = 1000,
    boundary_iou: Annotated[
        float, typer.Option(help="Overlap from which two annotations are one thing with a bad boundary.")
    ] = 0.1,
    looked: Annotated[
        Literal["listed", "all"],
        typer.Option(help="Who looked at an image: those named or who drew, or every rater at every image."),
    ] = "listed",
    single: Annotated[
        Literal["error", "skip"], typer.Option(help="An image at which fewer than two raters looked.")
    ] = "error",
    lone_categories: Annotated[
        Literal["error", "keep"], typer.Option(help="A category that one rater alone used.")
    ] = "error",
    image_col: Annotated[str | None, typer.Option("--image-col", metavar="NAME", help="Column of images.")] = None,
    annotator_col: AnnotatorColumn = None,
    category_col: Annotated[
        str | None, typer.Option("--category-col", metavar="NAME", help="Column of categories.")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say how high a model can score where raters differ.

    Writes convergence.json, thresholds.csv, pairs.csv, subsets.csv, variation.csv and images.csv to a folder.
    """
    from softgold.imaging.detection.convergence import ConvergenceSettings, label_convergence
    from softgold.imaging.detection.files import read_detections
    from softgold.imaging.detection.variation import variation_types
    from softgold.output import check_target

    check_target(output, force=force, directory=True, marker=MARKER)
    thresholds = parse_thresholds(iou)
    settings = ConvergenceSettings(confidence, alpha, empty, legacy, fraction, subsets, seed)
    table = read_detections(
        file,
        masks=masks,
        looked=looked,
        single=single,
        lone_categories=lone_categories,
        image=image_col,
        annotator=annotator_col,
        category=category_col,
    )
    with progress("subsets", subsets, quiet=quiet) as advance:
        result = label_convergence(table, thresholds, settings, progress=advance)
    variation = variation_types(table, thresholds, boundary_iou=boundary_iou)
    _write(output, file, result, variation, force)
    if as_json:
        print_json(_summary(file, result, variation))
    _tell(result, variation, output, quiet)


def parse_thresholds(text: str) -> list[float]:
    """Return the thresholds of `low:step:high`, both ends included, or of a list with commas.

    >>> parse_thresholds("0.5:0.05:0.6"), parse_thresholds("0.4,0.75")
    ([0.5, 0.55, 0.6], [0.4, 0.75])
    """
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        low, step, high = (float(part) for part in text.split(":"))
        count = round((high - low) / step) + 1
        if not 1 <= count <= MOST_THRESHOLDS:
            raise ValueError
        # Rounded, so that 0.6 is 0.6 and not the next number above it.
        return [round(low + place * step, 10) for place in range(count)]
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UsageError(f"--iou must be low:step:high or a list such as 0.5,0.75; got {text!r}") from None


def _write(output: Path, file: str, result: Convergence, variation: Variation, force: bool) -> None:
    from softgold.output import atomic_directory, write_json, write_table

    tables = {
        "thresholds.csv": result.thresholds,
        "pairs.csv": result.pairs,
        "subsets.csv": result.subsets,
        "variation.csv": variation.counts,
        "images.csv": variation.images,
    }
    with atomic_directory(output, force=force, marker=MARKER) as folder:
        write_json(_summary(file, result, variation), folder / MARKER)
        for name, frame in tables.items():
            write_table(frame, folder / name)


def _summary(file: str, result: Convergence, variation: Variation) -> dict[str, object]:
    from softgold import __version__

    return {
        "softgold": __version__,
        "input": file,
        **result.to_dict(),
        "variation": {"boundary_iou": variation.boundary_iou, "counts": variation.counts.to_dict(orient="records")},
    }


def _tell(result: Convergence, variation: Variation, output: Path, quiet: bool) -> None:
    from softgold.imaging.detection.convergence_result import TwoRaters

    what = "masks" if result.masks else "boxes"
    say(f"{result.n_images:,} images, {len(result.raters)} raters, {result.n_annotations:,} {what}", quiet=quiet)
    interval = result.alpha_interval
    say(f"alpha {result.alpha:.4f}, {_ends(interval.full_normal)} of the full data", quiet=quiet)
    if isinstance(result.measured, TwoRaters):
        found = result.measured.interval
        share = f"{100 * found.fraction:.3g} %"
        ends = f"{_ends(found.full_normal)} of the full data, {_ends(found.normal)} of {share} subsets"
        say(f"mAP {result.measured.map:.4f}, {ends}", quiet=quiet)
    total = variation.total()
    kinds = ("correct", "bad_boundary", "wrong_class", "merge", "merge_wrong_class", "missed_or_additional")
    say("; ".join(f"{name.replace('_', ' ')} {total[name]:,}" for name in kinds), quiet=quiet)
    say(result.sentence, quiet=quiet)
    say(f"written: {output}", quiet=quiet)


def _ends(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:.4f}, {interval[1]:.4f}]"
