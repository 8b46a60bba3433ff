"""Label convergence beside pycocotools' COCOeval on the same boxes, in one run.

Prints seconds and two ratios: a full evaluation (both directions, and alpha) over one COCOeval (one direction), and
1,000 subsets over a full evaluation:

    python scripts/bench/detection.py --images 5000 --boxes 20 --categories 80
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from softgold.imaging.detection.agreement import IOU_THRESHOLDS, AlphaSums
from softgold.imaging.detection.boxes import DetectionTable, find_overlaps
from softgold.imaging.detection.precision import map_of_matches, match_pairs, mean_directions
from softgold.imaging.detection.subsets import draw_subsets, subset_size
from softgold.imaging.detection.variation import variation_types

Drawn = tuple[NDArray[np.float64], NDArray[np.int64]]
THRESHOLDS = np.array(IOU_THRESHOLDS)


def draw_raters(n_images: int, n_boxes: int, n_categories: int, seed: int) -> tuple[Drawn, Drawn]:
    """Return boxes (images, boxes, 4) and categories of two raters who see the same things a little differently."""
    rng = np.random.default_rng(seed)
    place, size = rng.uniform(0, 600, (n_images, n_boxes, 2)), rng.uniform(20, 120, (n_images, n_boxes, 2))
    category = rng.integers(0, n_categories, (n_images, n_boxes))

    def one() -> Drawn:
        boxes = np.concatenate(
            [place + rng.normal(0, 2, place.shape), size * np.exp(rng.normal(0, 0.05, size.shape))], axis=2
        )
        other = rng.random(category.shape) < 0.05
        return boxes, np.where(other, rng.integers(0, n_categories, category.shape), category)

    return one(), one()


def as_table(raters: tuple[Drawn, Drawn]) -> DetectionTable:
    """Return the boxes as a table."""
    n_images, n_boxes, _ = raters[0][0].shape
    names = np.repeat(np.arange(n_images), n_boxes).astype(str)
    return DetectionTable.from_columns(
        image=pd.Index(np.tile(names, 2), dtype="str"),
        rater=pd.Index(np.repeat(["a", "b"], n_images * n_boxes), dtype="str"),
        category=pd.Index(np.concatenate([drawn[1].ravel() for drawn in raters]).astype(str), dtype="str"),
        boxes=np.concatenate([drawn[0].reshape(-1, 4) for drawn in raters]),
        image_ids=pd.Index(np.arange(n_images).astype(str), dtype="str"),
    )


def coco_evaluation(raters: tuple[Drawn, Drawn], n_categories: int) -> Callable[[], NDArray[np.float64]]:
    """Return an action that evaluates rater b against rater a by COCOeval, over all areas only."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def annotations(drawn: Drawn, **extra: float) -> list[dict[str, Any]]:
        boxes, category = drawn
        n_boxes = boxes.shape[1]
        return [
            {"id": k + 1, "image_id": k // n_boxes, "category_id": int(c), "bbox": box, "area": 1.0, "iscrowd": 0}
            | extra
            for k, (box, c) in enumerate(zip(boxes.reshape(-1, 4).tolist(), category.ravel(), strict=True))
        ]

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": image} for image in range(len(raters[0][0]))],
            "annotations": annotations(raters[0]),
            "categories": [{"id": category, "name": str(category)} for category in range(n_categories)],
        }
        truth.createIndex()
        found = truth.loadRes(annotations(raters[1], score=0.99))

    def evaluate() -> NDArray[np.float64]:
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = COCOeval(truth, found, "bbox")
            evaluation.params.iouThrs = THRESHOLDS
            evaluation.params.maxDets = [1000]
            evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
            evaluation.evaluate()
            evaluation.accumulate()
        precision = evaluation.eval["precision"][..., 0, 0]
        return np.array([level[level > -1].mean() for level in precision])

    return evaluate


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long an action takes, and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def measure(table: DetectionTable, subsets: sparse.csr_array, confidence: Any) -> dict[str, Any]:
    """Time a full evaluation, mAP and alpha, and the subsets that use its matches."""

    def full() -> tuple[Any, AlphaSums]:
        overlaps = find_overlaps(table)
        matches = match_pairs(table, overlaps, THRESHOLDS, confidence)
        map_of_matches(matches, table.n_images)
        sums = AlphaSums.of(table, overlaps, THRESHOLDS)
        sums.alpha("one")
        return matches, sums

    seconds, (matches, sums) = timed(full)
    of_subsets, _ = timed(lambda: (mean_directions(matches.directions(subsets)), sums.pooled(subsets)))
    result = map_of_matches(matches, table.n_images)
    return {"full": seconds, "subsets": of_subsets, "first_truth": result.first_truth}


def main() -> None:
    """Parse the options, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--boxes", type=int, default=20)
    parser.add_argument("--categories", type=int, default=80)
    parser.add_argument("--subsets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    raters = draw_raters(options.images, options.boxes, options.categories, options.seed)
    table = as_table(raters)
    subsets = draw_subsets(options.images, subset_size(options.images, 0.1), options.subsets, options.seed)
    coco_seconds, reference = timed(coco_evaluation(raters, options.categories))
    report: dict[str, Any] = {"boxes": len(table), "coco_eval_seconds": round(coco_seconds, 3)}
    for confidence in ("tied", "coco"):
        times = measure(table, subsets, confidence)
        report[confidence] = {
            "full_seconds": round(times["full"], 3),
            "subsets_seconds": round(times["subsets"], 3),
            "full_to_coco_eval": round(times["full"] / coco_seconds, 3),
            "subsets_to_full": round(times["subsets"] / times["full"], 3),
        }
        if confidence == "coco":
            report["largest_difference_from_coco_eval"] = float(np.abs(times["first_truth"] - reference).max())
    report["variation_seconds"] = round(timed(lambda: variation_types(table))[0], 3)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
