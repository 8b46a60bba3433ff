"""Label convergence: worked examples, pycocotools beside us, order, subsets and lines."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from softgold.errors import InputError, UsageError
from softgold.imaging.detection.agreement import IOU_THRESHOLDS, detection_alpha
from softgold.imaging.detection.boxes import DetectionTable, box_iou, find_overlaps
from softgold.imaging.detection.convergence import ConvergenceSettings, label_convergence
from softgold.imaging.detection.convergence_result import NoLine, RaterPairs, TwoRaters
from softgold.imaging.detection.lines import PUBLISHED_LINE, Line, alpha_to_map, fit_line
from softgold.imaging.detection.ordered import RECALLS, recalls_reached
from softgold.imaging.detection.precision import match_pairs, modified_map
from softgold.imaging.detection.subsets import draw_subsets, normal_interval, subset_interval, subset_size

A = {
    "0": [(1, [0, 0, 10, 10]), (1, [20, 0, 10, 10]), (2, [40, 0, 10, 10])],
    "1": [(1, [0, 0, 20, 20])],
    "2": [],
}
B = {
    "0": [(1, [100, 0, 10, 10]), (1, [1, 0, 10, 10]), (2, [40, 2, 10, 10])],
    "1": [(2, [0, 0, 20, 20]), (1, [0, 0, 20, 18])],
    "2": [(3, [5, 5, 10, 10])],
}


def table_of(a, b):
    return DetectionTable.from_boxes({image: {"A": a[image], "B": b[image]} for image in a})


def random_study(seed, n_images=12, n_boxes=8, n_categories=3, jitter=3.0):
    """Two raters who draw the same things with jitter, other classes and omissions."""
    rng = np.random.default_rng(seed)
    images = {}
    for image in range(n_images):
        xy, wh = rng.uniform(0, 90, (n_boxes, 2)), rng.uniform(8, 40, (n_boxes, 2))
        category = rng.integers(0, n_categories, n_boxes)
        images[image] = {}
        for rater in "AB":
            boxes = np.hstack([xy + rng.normal(0, jitter, xy.shape), wh * np.exp(rng.normal(0, 0.1, wh.shape))])
            shown = np.where(rng.random(n_boxes) < 0.15, rng.integers(0, n_categories, n_boxes), category)
            kept = rng.permutation(n_boxes)[: rng.integers(0, n_boxes + 1)]
            images[image][rater] = [(int(shown[i]), boxes[i].tolist()) for i in kept]
    return images


def coco_precision(truth, detections, thresholds):
    """mAP by pycocotools at each threshold, the confidence 0.99 throughout, as the authors have it."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    categories = sorted({c for drawn in (*truth.values(), *detections.values()) for c, _ in drawn})

    def annotations(drawn, **extra):
        rows = [(image, category, box) for image in drawn for category, box in drawn[image]]
        return [
            {"id": i + 1, "image_id": int(image), "category_id": category, "bbox": list(box), "area": 1.0, "iscrowd": 0}
            | extra
            for i, (image, category, box) in enumerate(rows)
        ]

    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {
            "images": [{"id": int(image)} for image in truth],
            "annotations": annotations(truth),
            "categories": [{"id": category, "name": str(category)} for category in categories],
        }
        reference.createIndex()
        found = reference.loadRes(annotations(detections, score=0.99))
        evaluation = COCOeval(reference, found, "bbox")
        evaluation.params.iouThrs = np.asarray(thresholds)
        evaluation.params.maxDets = [1000]
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"][..., 0, 0]
    return np.array([level[level > -1].mean() if (level > -1).any() else -1.0 for level in precision])


class TestModifiedMap:
    @pytest.mark.parametrize(
        ("threshold", "confidence", "expected"),
        [
            (0.5, "coco", [0.721122112211221, 0.35313531353135313, 0.537128712871287]),
            (0.5, "tied", [0.47112211221122113, 0.31573157315731576, 0.3934268426842684]),
            (0.75, "coco", [0.2211221122112211, 0.18481848184818483, 0.20297029702970298]),
            (0.75, "tied", [0.2211221122112211, 0.1474147414741474, 0.18426842684268424]),
        ],
    )
    def test_worked_examples(self, threshold, confidence, expected):
        result = modified_map(table_of(A, B), [threshold], confidence=confidence)
        found = [result.first_truth[0], result.second_truth[0], result.mean[0]]
        np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_coco_depends_on_the_order_of_the_boxes_and_tied_does_not(self):
        a = {"0": [(1, [0, 0, 10, 10]), (1, [20, 0, 10, 10])]}
        b = {"0": [(1, [100, 0, 10, 10]), (1, [0, 0, 10, 10])]}
        reversed_b = {"0": b["0"][::-1]}
        expected = {"coco": (0.37871287128712866, 0.5049504950495049), "tied": (0.2524752475247525,) * 2}
        for confidence, values in expected.items():
            for other, value in zip((b, reversed_b), values, strict=True):
                result = modified_map(table_of(a, other), [0.5], confidence=confidence)
                assert result.map == pytest.approx(value, abs=1e-12)

    @pytest.mark.parametrize("seed", range(6))
    def test_pycocotools_gives_the_same(self, seed):
        images = random_study(seed)
        a, b = ({image: raters[rater] for image, raters in images.items()} for rater in "AB")
        result = modified_map(DetectionTable.from_boxes(images), confidence="coco")
        np.testing.assert_allclose(result.first_truth, coco_precision(a, b, IOU_THRESHOLDS), atol=1e-6)
        np.testing.assert_allclose(result.second_truth, coco_precision(b, a, IOU_THRESHOLDS), atol=1e-6)

    @pytest.mark.parametrize("seed", range(8))
    def test_pycocotools_gives_the_same_where_boxes_tie(self, seed):
        rng = np.random.default_rng(seed)
        images = {
            image: {
                rater: [(int(rng.integers(2)), [*rng.integers(0, 3, 2).tolist(), 4, 4]) for _ in range(8)]
                for rater in "AB"
            }
            for image in range(10)
        }
        a, b = ({image: raters[rater] for image, raters in images.items()} for rater in "AB")
        result = modified_map(DetectionTable.from_boxes(images), confidence="coco")
        np.testing.assert_allclose(result.first_truth, coco_precision(a, b, IOU_THRESHOLDS), atol=1e-6)
        np.testing.assert_allclose(result.second_truth, coco_precision(b, a, IOU_THRESHOLDS), atol=1e-6)

    def test_pycocotools_gives_the_same_overlaps(self):
        from pycocotools import mask

        boxes = np.random.default_rng(0).uniform(0, 50, (2, 40, 4))
        ours = box_iou(np.repeat(boxes[0], 40, axis=0), np.tile(boxes[1], (40, 1))).reshape(40, 40)
        np.testing.assert_array_equal(ours, mask.iou(boxes[0], boxes[1], [0] * 40))

    @settings(max_examples=25)
    @given(st.integers(0, 10_000), st.randoms(use_true_random=False))
    def test_tied_is_free_of_order_and_of_who_is_called_what(self, seed, random):
        images = random_study(seed, n_images=3, n_categories=2, jitter=6.0)
        result = modified_map(DetectionTable.from_boxes(images))
        swap = {"A": "B", "B": "A"}
        shuffled = {
            image: {swap[name]: random.sample(drawn, len(drawn)) for name, drawn in raters.items()}
            for image, raters in sorted(images.items(), key=lambda pair: random.random())
        }
        again = modified_map(DetectionTable.from_boxes(shuffled))
        np.testing.assert_allclose(result.first_truth, again.second_truth, atol=1e-12)
        np.testing.assert_allclose(result.mean, again.mean, atol=1e-12)

    def test_tied_is_the_single_operating_point(self):
        # 2 of 3 boxes found by 4 detections: recall 2/3 reaches 67 of the 101 recalls, precision 1/2.
        box = [0.0, 0.0, 10.0, 10.0]
        places = [[100.0 * i, *box[1:]] for i in range(7)]
        a = {"0": [(1, places[i]) for i in (0, 1, 2)]}
        b = {"0": [(1, places[i]) for i in (0, 1, 5, 6)]}
        result = modified_map(table_of(a, b), [0.5])
        np.testing.assert_allclose(result.first_truth, 67 / 101 / 2, atol=1e-12)
        np.testing.assert_allclose(result.second_truth, 51 / 101 * 2 / 3, atol=1e-12)

    def test_raters_who_agree_score_one_and_nothing_drawn_is_minus_one(self):
        same = table_of(A, A)
        np.testing.assert_allclose(modified_map(same).mean, 1.0, atol=1e-12)
        np.testing.assert_allclose(modified_map(same, [1.0], confidence="coco").mean, 1.0, atol=1e-12)
        nothing = {"0": []}
        assert modified_map(table_of(nothing, nothing), [0.5]).mean.tolist() == [-1.0]
        one_sided = modified_map(table_of(nothing, {"0": A["0"]}), [0.5])
        assert (one_sided.first_truth[0], one_sided.second_truth[0], one_sided.mean[0]) == (-1.0, 0.0, 0.0)

    @pytest.mark.parametrize("confidence", ["tied", "coco"])
    def test_a_pair_at_the_threshold_matches(self, confidence):
        table = table_of({"0": [(1, [0, 0, 10, 10])]}, {"0": [(1, [0, 0, 10, 5])]})
        assert modified_map(table, [0.5], confidence=confidence).map == pytest.approx(1.0)
        assert modified_map(table, [0.5 + 1e-9], confidence=confidence).map == 0.0

    def test_after_a_thousand_annotations_coco_looks_no_further(self):
        far = [(1, [30.0 * i, 0, 10, 10]) for i in range(1, 1003)]
        a, b = {"0": [(1, [0, 0, 10, 10])]}, {"0": [*far, (1, [0, 0, 10, 10])]}
        result = modified_map(table_of(a, b), [0.5], confidence="coco")
        np.testing.assert_allclose(result.first_truth, coco_precision(a, b, [0.5]), atol=1e-6)
        assert result.first_truth[0] == 0.0
        assert modified_map(table_of(a, b), [0.5]).first_truth[0] == pytest.approx(1 / 1003)

    def test_three_raters_are_refused(self):
        table = DetectionTable.from_boxes({"x": {"A": [], "B": [], "C": []}})
        with pytest.raises(InputError, match="image 'x' has 3 raters"):
            modified_map(table)

    def test_a_confidence_that_is_none(self):
        with pytest.raises(UsageError, match="confidence must be one of tied, coco"):
            modified_map(table_of(A, B), confidence="random")

    def test_recalls_are_counted_as_a_search_would(self):
        values = np.array([j / n for n in range(1, 250) for j in range(n + 1)])
        np.testing.assert_array_equal(recalls_reached(values), np.searchsorted(RECALLS, values, side="right"))


@pytest.mark.parametrize("confidence", ["tied", "coco"])
def test_a_subset_is_what_its_images_alone_would_give(confidence):
    table = DetectionTable.from_boxes(random_study(3, n_images=20, jitter=5.0))
    thresholds = np.array(IOU_THRESHOLDS)
    matches = match_pairs(table, find_overlaps(table), thresholds, confidence)
    subsets = draw_subsets(20, 6, 15, seed=4)
    found = matches.directions(subsets)
    for row in range(15):
        alone = modified_map(table.take_images(subsets.toarray()[row] > 0), confidence=confidence)
        np.testing.assert_allclose(found[row, :, 0], alone.first_truth, atol=1e-10)
        np.testing.assert_allclose(found[row, :, 1], alone.second_truth, atol=1e-10)


class TestSubsets:
    def test_worked_example(self):
        interval = subset_interval([61.2, 63.5, 64.8, 65.1, 65.9, 66.4, 67.0, 68.1], 0.1)
        assert interval.mean == pytest.approx(65.25)
        assert interval.sd == pytest.approx(2.158703314492289, abs=1e-12)
        assert interval.normal == pytest.approx((61.018941503595116, 69.48105849640488), abs=1e-12)
        assert interval.percentile == pytest.approx((61.6025, 67.9075), abs=1e-12)
        assert interval.full_sd == pytest.approx(0.7195677714974298, abs=1e-12)
        assert interval.full_normal == pytest.approx((63.83964716786504, 66.66035283213496), abs=1e-12)

    # Label Convergence, table 3: mean, SD, printed interval.
    @pytest.mark.parametrize(
        ("mean", "sd", "low", "high"),
        [
            (65.08, 1.25, 62.64, 67.52),
            (59.78, 1.26, 57.32, 62.24),
            (28.39, 1.55, 25.35, 31.43),
            (20.55, 1.64, 17.33, 23.75),
            (81.89, 0.82, 80.28, 83.50),
            (72.87, 0.92, 71.07, 74.66),
            (47.08, 1.51, 44.12, 50.05),
        ],
    )
    def test_the_published_intervals_follow_from_means_and_deviations(self, mean, sd, low, high):
        np.testing.assert_allclose(normal_interval(mean, sd), (low, high), atol=0.021)

    def test_the_published_subset_sizes(self):
        assert [subset_size(n, 0.1) for n in (5000, 80_067, 4773, 2257, 15_000)] == [500, 8007, 477, 226, 1500]

    def test_subsets_have_no_image_twice_and_every_image_alike(self):
        subsets = draw_subsets(30, 6, 5000, seed=1)
        assert set(subsets.data) == {1.0}
        assert (subsets.sum(axis=1) == 6).all()
        np.testing.assert_allclose(subsets.mean(axis=0), 0.2, atol=0.03)

    def test_the_full_data_interval_covers_the_truth_as_often_as_it_says(self):
        rng = np.random.default_rng(0)
        covered = 0
        for seed in range(300):
            data = rng.normal(size=200)
            means = draw_subsets(200, 20, 400, seed=seed) @ data / 20
            low, high = subset_interval(means, 0.1).full_normal
            covered += low <= 0 <= high
        assert 0.91 <= covered / 300 <= 0.985

    def test_undefined_subsets_are_left_out_and_counted(self):
        interval = subset_interval([1.0, np.nan, 2.0], 0.5)
        assert (interval.mean, interval.n_subsets, interval.n_undefined) == (1.5, 2, 1)
        with pytest.raises(InputError, match="larger subsets"):
            subset_interval([1.0, np.nan], 0.5)

    def test_bad_settings(self):
        with pytest.raises(InputError, match="two images"):
            subset_size(1, 0.1)
        with pytest.raises(UsageError, match="fraction"):
            subset_size(10, 1.0)
        with pytest.raises(UsageError, match="number of subsets"):
            draw_subsets(10, 2, 1)


class TestLines:
    @pytest.mark.parametrize(
        ("alpha", "raw", "clipped"),
        [(0.7439, 0.8189004, 0.8189004), (0.3275, 0.47079, 0.47079), (1.0, 1.033, 1.0), (-1.0, -0.639, 0.0)],
    )
    def test_alpha_to_map(self, alpha, raw, clipped):
        inferred = alpha_to_map(alpha)
        assert float(inferred.raw) == pytest.approx(raw, abs=1e-12)
        assert float(inferred.clipped) == pytest.approx(clipped, abs=1e-12)

    def test_where_the_published_line_leaves_the_scale(self):
        assert pytest.approx(0.9605, abs=5e-5) == PUBLISHED_LINE.reaches_one

    def test_least_squares(self):
        line = fit_line([0.1, 0.3, 0.5, 0.55, 0.8], [0.27, 0.46, 0.6, 0.68, 0.85])
        found = [line.slope, line.intercept, line.pearson, line.r2]
        expected = [0.8285714285714284, 0.1991428571428573, 0.9967607538192957, 0.9935320003544107]
        np.testing.assert_allclose(found, expected, atol=1e-12)

    @pytest.mark.parametrize("alpha", [[], [0.5], [0.5, 0.5]])
    def test_too_few_points(self, alpha):
        with pytest.raises(InputError, match="two different values"):
            fit_line(alpha, alpha)


class TestLabelConvergence:
    def test_two_raters(self):
        table = DetectionTable.from_boxes(random_study(0, n_images=60))
        result = label_convergence(table, settings=ConvergenceSettings(n_subsets=200, seed=2))
        assert result.measured.map == pytest.approx(modified_map(table).map)
        assert result.alpha == pytest.approx(detection_alpha(table).alpha)
        assert result.subset_size == 6
        interval = result.measured.interval
        assert interval.full_normal[0] < result.measured.map < interval.full_normal[1]
        assert result.upper_bound == interval.full_normal[1] < interval.normal[1]
        line = np.polyfit(*(np.ravel(part) for part in _points(table, 200, 2)), deg=1)
        np.testing.assert_allclose([result.refitted.line.slope, result.refitted.line.intercept], line, atol=1e-9)
        assert f"above {100 * result.upper_bound:.1f} mAP is fitting one annotator's habits" in result.sentence

    def test_many_raters_two_an_image(self):
        images = {
            image: dict(zip(("r1", "r2", "r3")[image % 2 :], raters.values(), strict=False))
            for image, raters in random_study(1, n_images=30).items()
        }
        result = label_convergence(DetectionTable.from_boxes(images), settings=ConvergenceSettings(n_subsets=50))
        assert isinstance(result.measured, TwoRaters)
        assert result.pairs[["rater_a", "rater_b", "n_images"]].to_numpy().tolist() == [
            ["r1", "r2", 15],
            ["r2", "r3", 15],
        ]

    def test_five_raters_are_inferred_from_alpha(self):
        one = random_study(1, n_images=30, jitter=1.5)
        fewer = {"C": 6, "D": 4, "E": 2}  # raters who stop early, so that pairs differ in alpha and in mAP
        images = {i: {**one[i], **{name: one[i]["A"][:most] for name, most in fewer.items()}} for i in one}
        table = DetectionTable.from_boxes(images)
        result = label_convergence(table, settings=ConvergenceSettings(n_subsets=100))
        scores = result.pairs["map"]
        assert result.measured == RaterPairs(10, scores.mean(), scores.min(), scores.max())
        line = np.polyfit(result.pairs["alpha"], scores, deg=1)
        np.testing.assert_allclose([result.refitted.line.slope, result.refitted.line.intercept], line, atol=1e-9)
        assert result.refitted.line.n_points == len(result.pairs) == 10
        pair = table.take_raters(0, 2)
        row = result.pairs.iloc[1]
        assert (row["rater_a"], row["rater_b"]) == ("A", "C")
        assert row["map"] == pytest.approx(modified_map(pair).map)
        assert row["alpha"] == pytest.approx(detection_alpha(pair).alpha)
        assert result.refitted.line.r2 > 0.5
        assert result.bound.basis == "refitted line"
        assert f"a line fitted on 10 pairs of raters, R^2 {result.refitted.line.r2:.2f}" in result.sentence
        # Lines of pairs are applied at the pairs' level of alpha, which is below that of all raters together.
        level = result.alpha_interval.mean + result.pairs["alpha"].mean() - result.alpha
        assert level < result.alpha_interval.mean
        assert result.published.raw.mean == pytest.approx(0.836 * level + 0.197)

    @pytest.mark.parametrize("thresholds", [[0.4], IOU_THRESHOLDS])
    def test_a_line_that_few_points_determine_is_not_the_headline(self, thresholds):
        one = random_study(1, n_images=30, jitter=1.5)
        images = {i: {**one[i], "C": one[i]["A"][:3]} for i in one}
        table = DetectionTable.from_boxes(images)
        result = label_convergence(table, thresholds, ConvergenceSettings(n_subsets=50))
        assert result.refitted.line.n_points == 3
        assert result.bound.basis == "published line"
        measured = 100 * result.pairs["map"]
        assert f"Measured directly, raters reach {measured.mean():.1f} mAP" in result.sentence
        assert f"from {measured.min():.1f} to {measured.max():.1f}" in result.sentence
        assert f"the published line infers {100 * result.published.clipped.mean:.1f} mAP" in result.sentence
        assert result.upper_bound == result.published.clipped.full_normal[1]
        values = result.to_dict()
        assert (values["basis"], values["map"], values["map_interval"]) == ("published line", None, None)

    def test_pairs_that_all_agree_alike_give_no_line(self):
        one = random_study(1, n_images=30)
        table = DetectionTable.from_boxes({i: dict.fromkeys("ABC", one[i]["A"]) for i in one})
        result = label_convergence(table, [0.5], ConvergenceSettings(n_subsets=50))
        assert result.refitted == NoLine(3)
        assert result.to_dict()["refitted"] is None
        assert result.bound.basis == "published line"

    @pytest.mark.parametrize(
        ("line", "determined"),
        [
            (Line(0.8, 0.2, 0.8, 0.64, 10), True),
            (Line(0.8, 0.2, 0.8, 0.64, 9), False),
            (Line(0.8, 0.2, 0.7, 0.49, 100), False),
            (Line(-0.8, 0.2, -0.9, 0.81, 100), False),
            (Line(0.8, 0.2, float("nan"), float("nan"), 100), False),
        ],
    )
    def test_what_determines_a_line(self, line, determined):
        assert line.is_determined is determined

    def test_pooled_alpha_on_subsets(self):
        table = DetectionTable.from_boxes(random_study(5, n_images=20))
        options = ConvergenceSettings(n_subsets=20, alpha="pooled", fraction=0.3)
        result = label_convergence(table, settings=options)
        subsets = draw_subsets(20, 6, 20, seed=0).toarray() > 0
        for alpha, keep in zip(result.subsets["alpha"], subsets, strict=True):
            assert alpha == pytest.approx(detection_alpha(table.take_images(keep)).pooled.mean(), abs=1e-10)
        assert result.alpha == pytest.approx(detection_alpha(table).pooled.mean())

    def test_skipped_empty_images_on_subsets(self):
        table = DetectionTable.from_boxes({f"e{i}": {"A": [], "B": []} for i in range(5)} | random_study(5, n_images=9))
        options = ConvergenceSettings(n_subsets=20, empty="skip", fraction=0.5)
        result = label_convergence(table, settings=options)
        subsets = draw_subsets(14, 7, 20, seed=0).toarray() > 0
        for alpha, keep in zip(result.subsets["alpha"], subsets, strict=True):
            assert alpha == pytest.approx(detection_alpha(table.take_images(keep), empty="skip").alpha, abs=1e-10)

    def test_progress_and_plain_values(self):
        done = []
        table = DetectionTable.from_boxes(random_study(0, n_images=10))
        result = label_convergence(table, settings=ConvergenceSettings(n_subsets=50), progress=done.append)
        assert sum(done) == 50
        assert result.to_dict()["sentence"] == result.sentence

    def test_the_same_seed_gives_the_same(self):
        table = DetectionTable.from_boxes(random_study(0, n_images=20))
        one, two, other = (
            label_convergence(table, settings=ConvergenceSettings(n_subsets=20, seed=seed)).measured
            for seed in (1, 1, 2)
        )
        assert one == two != other


def _points(table, n_subsets, seed):
    subsets = draw_subsets(table.n_images, subset_size(table.n_images, 0.1), n_subsets, seed)
    alpha = subsets @ detection_alpha(table).per_image.T / subsets.sum(axis=1)[:, None]
    maps = [modified_map(table.take_images(row > 0)).mean for row in subsets.toarray()]
    return alpha, np.array(maps)


def test_subsets_are_a_sparse_matrix():
    assert isinstance(draw_subsets(4, 2, 3), sparse.csr_array)
