"""Alpha of boxes and masks: worked examples, the published code's own tests, an assignment solver, invariances."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from softgold.agreement import NominalLabels, krippendorff_alpha
from softgold.errors import InputError, UsageError
from softgold.imaging.detection.agreement import FILLER, IOU_THRESHOLDS, detection_alpha, link_units, unit_labels
from softgold.imaging.detection.boxes import DetectionTable, box_iou, find_overlaps
from softgold.imaging.detection.matching import best_assignment, greedy_disjoint, largest_matching

TWO_RATERS = [
    [
        [(1, [0, 0, 10, 10]), (1, [20, 0, 10, 10]), (2, [40, 0, 10, 10])],
        [(1, [100, 0, 10, 10]), (1, [1, 0, 10, 10]), (2, [40, 2, 10, 10])],
    ],
    [[(1, [0, 0, 20, 20])], [(2, [0, 0, 20, 20]), (1, [0, 0, 20, 18])]],
    [[], [(3, [5, 5, 10, 10])]],
    [[], []],
]
THREE_RATERS = [
    [(1, [0, 0, 10, 10]), (2, [20, 0, 10, 10]), (1, [40, 0, 10, 10])],
    [(1, [1, 0, 10, 10]), (1, [20, 1, 10, 10]), (3, [60, 0, 10, 10])],
    [(1, [0, 1, 10, 10]), (3, [61, 0, 10, 10]), (2, [80, 0, 10, 10])],
]
GATING = [
    [(1, [9.0, 0, 10, 10]), (1, [0.0, 0, 10, 10]), (1, [5.5, 0, 10, 10])],
    [(1, [8.5, 0, 10, 10]), (1, [2.5, 0, 10, 10]), (1, [11.5, 0, 10, 10])],
]


def table_of(images):
    return DetectionTable.from_boxes(
        {str(i): dict(zip("ABCDE", raters, strict=False)) for i, raters in enumerate(images)}
    )


def units_of(images, threshold=0.5, legacy=False):
    table = table_of(images)
    return unit_labels(table, link_units(table, find_overlaps(table), threshold, legacy=legacy))


def alpha_of_units(units):
    """Alpha by the nominal module, the filler an ordinary category."""
    return krippendorff_alpha(NominalLabels.from_matrix([list(column) for column in zip(*units, strict=True)]))


class TestWorkedExamples:
    def test_units_of_two_raters(self):
        assert units_of(TWO_RATERS) == [
            [("1", "1"), ("1", "*"), ("2", "2"), ("*", "1")],
            [("1", "2"), ("*", "1")],
            [("*", "3")],
            [],
        ]

    def test_alpha_of_two_raters(self):
        result = detection_alpha(table_of(TWO_RATERS), [0.5])
        np.testing.assert_allclose(result.per_image[0], [0.3, -0.2, 0.0, 1.0], atol=1e-12)
        np.testing.assert_allclose(result.mean_image, [0.275], atol=1e-12)
        np.testing.assert_allclose(result.pooled, [0.029850746268656716], atol=1e-12)
        assert result.n_empty == 1

    def test_empty_images_can_be_skipped(self):
        result = detection_alpha(table_of(TWO_RATERS), [0.5], empty="skip")
        np.testing.assert_allclose(result.mean_image, [0.033333333333333326], atol=1e-12)
        assert np.isnan(result.per_image[0, 3])

    def test_three_raters(self):
        assert units_of([THREE_RATERS]) == [
            [("1", "1", "1"), ("2", "1", "*"), ("1", "*", "*"), ("*", "3", "3"), ("*", "*", "2")]
        ]
        assert detection_alpha(table_of([THREE_RATERS]), [0.5]).alpha == pytest.approx(0.19230769230769232, abs=1e-12)
        assert detection_alpha(table_of([THREE_RATERS]), [0.5], legacy=True).alpha == 0.1923

    def test_without_the_filler_alpha_would_be_higher(self):
        units = [[None if label == FILLER else label for label in unit] for unit in units_of([THREE_RATERS])[0]]
        assert alpha_of_units(units) == pytest.approx(0.5714285714285714, abs=1e-12)

    def test_gating(self):
        assert units_of([GATING]) == [[("1", "1")] * 3]
        assert units_of([GATING], legacy=True) == [[("1", "1"), ("1", "1"), ("1", "*"), ("*", "1")]]
        assert detection_alpha(table_of([GATING]), [0.5]).alpha == 1.0
        assert detection_alpha(table_of([GATING]), [0.5], legacy=True).alpha == pytest.approx(-0.1667, abs=1e-12)

    def test_category_zero_is_not_nothing(self):
        images = [[[(0, [0, 0, 10, 10])], []]]
        assert detection_alpha(table_of(images), [0.5]).alpha == 0.0
        assert detection_alpha(table_of(images), [0.5], legacy=True).alpha == 1.0

    def test_a_pair_at_the_threshold_does_not_match(self):
        images = [[[(1, [0, 0, 10, 10])], [(1, [0, 0, 10, 5])]]]
        assert units_of(images, 0.5) == [[("1", "*"), ("*", "1")]]
        assert units_of(images, 0.49) == [[("1", "1")]]


# The unit tests of the authors' code (KrippendorffAlphaComputerVision), rater by rater; * is nothing.
AUTHORS = [
    ("1 / 1", 1.0),
    ("1 / *", 0.0),
    ("1 / 2", 0.0),
    ("1 2 / 1 2", 1.0),
    ("1 2 / 2 *", -0.2),
    ("1 2 3 / 1 * 1", 0.1667),
    ("1 * 3 1 2 / 1 3 * 2 2", 0.2703),
    ("1 2 * 1 2 1 6 8 3 * / * 2 1 2 2 5 6 7 3 2", 0.3049),
    ("1 2 * 1 2 1 6 8 3 * 1 2 3 1 2 1 2 3 1 5 / * 2 1 2 2 5 6 7 3 2 1 2 6 2 5 1 * 3 1 5", 0.3953),
]


@pytest.mark.parametrize(("text", "expected"), AUTHORS)
def test_the_authors_own_alpha_tests(text, expected):
    raters = [
        [(label, [100 * place, 0, 10, 10]) for place, label in enumerate(labels.split()) if label != "*"]
        for labels in text.split("/")
    ]
    table = DetectionTable.from_boxes({"x": {"A": raters[0], "B": raters[1]}})
    assert detection_alpha(table, [0.5], legacy=True).alpha == expected
    assert detection_alpha(table, [0.5]).alpha == pytest.approx(expected, abs=5e-5)


def test_the_authors_example_of_three_raters():
    """Apples and bananas, the boxes of the authors' example; their test has the same units and alpha 0.0222."""
    raters = [
        [(2, [57, 40, 353, 217.84]), (1, [228, 169, 153, 159]), (1, [136, 173, 127, 147])],
        [(1, [135, 176, 146, 141]), (1, [229, 171, 152, 159]), (2, [56, 42, 352, 253])],
        [(1, [113, 163, 272, 181]), (2, [138, 173, 151, 146]), (1, [56, 38, 353, 246])],
    ]
    assert units_of([raters]) == [[("2", "2", "1"), ("1", "1", "*"), ("1", "1", "2"), ("*", "*", "1")]]
    assert detection_alpha(table_of([raters]), [0.5], legacy=True).alpha == 0.0222


@st.composite
def drawn(draw, raters=2, most=6):
    """Boxes on a small canvas, so that they overlap in knots."""
    number = st.integers(0, 8)
    box = st.tuples(number, number, st.integers(1, 6), st.integers(1, 6)).map(lambda b: [float(v) for v in b])
    return [draw(st.lists(st.tuples(st.integers(0, 2), box), max_size=most)) for _ in range(raters)]


@pytest.mark.slow
@given(st.lists(drawn(), min_size=1, max_size=3), st.sampled_from([0.1, 0.3, 0.5]))
def test_the_linked_overlap_is_the_largest_there_is(images, threshold):
    table = table_of(images)
    unit = link_units(table, find_overlaps(table), threshold)
    for image in range(table.n_images):
        rows = np.flatnonzero(table.image == image)
        a, b = rows[table.slot[rows] == 0], rows[table.slot[rows] == 1]
        iou = box_iou(np.repeat(table.boxes[a], len(b), axis=0), np.tile(table.boxes[b], (len(a), 1)))
        gated = np.where(iou > threshold, iou, 0.0).reshape(len(a), len(b))
        best = gated[linear_sum_assignment(gated, maximize=True)].sum()
        linked = gated[unit[a][:, None] == unit[b][None, :]]
        assert (linked > 0).all()
        assert linked.sum() == pytest.approx(best, abs=1e-12)


@pytest.mark.slow
@given(st.lists(drawn(raters=3, most=4), min_size=1, max_size=3), st.sampled_from([0.2, 0.5]))
def test_alpha_is_that_of_the_units(images, threshold):
    table = table_of(images)
    units = unit_labels(table, link_units(table, find_overlaps(table), threshold))
    result = detection_alpha(table, [threshold])
    for alpha, of_image in zip(result.per_image[0], units, strict=True):
        one_label = len({label for unit in of_image for label in unit}) < 2
        assert alpha == pytest.approx(1.0 if one_label else alpha_of_units(of_image), abs=1e-9)
    together = [unit for of_image in units for unit in of_image]
    if len({label for unit in together for label in unit}) > 1:
        assert result.pooled[0] == pytest.approx(alpha_of_units(together), abs=1e-9)


def plain_units(raters, threshold):
    """Link rater after rater, one image, one Hungarian assignment a pair of raters."""
    units = [{0: box} for box in raters[0]]
    for new, drawn_by_new in enumerate(raters[1:], start=1):
        left = list(drawn_by_new)
        for earlier in range(new):
            open_units = [unit for unit in units if earlier in unit and new not in unit]
            if not open_units or not left:
                continue
            a = np.array([unit[earlier][1] for unit in open_units], dtype=float)
            b = np.array([box for _, box in left], dtype=float)
            iou = box_iou(np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1))).reshape(len(a), len(b))
            gated = np.where(iou > threshold, iou, 0.0)
            pairs = [
                (i, j) for i, j in zip(*linear_sum_assignment(gated, maximize=True), strict=True) if gated[i, j] > 0
            ]
            for i, j in pairs:
                open_units[i][new] = left[j]
            left = [box for j, box in enumerate(left) if j not in {j for _, j in pairs}]
        units += [{new: box} for box in left]
    return [tuple(unit[r][0] if r in unit else FILLER for r in range(len(raters))) for unit in units]


@pytest.mark.parametrize("seed", range(40))
def test_many_raters_are_linked_one_after_the_other(seed):
    rng = np.random.default_rng(seed)
    raters = [
        [(f"{rater}{i}", [*rng.uniform(0, 8, 2), *rng.uniform(3, 8, 2)]) for i in range(rng.integers(0, 7))]
        for rater in range(4)
    ]
    assert units_of([raters], 0.3)[0] == plain_units(raters, 0.3)


@pytest.mark.slow
@given(drawn(raters=3))
def test_a_rater_who_agrees_with_himself_scores_one(raters):
    apart = [(label, [20.0 * i, 0.0, *box[2:]]) for i, (label, box) in enumerate(raters[0])]
    result = detection_alpha(table_of([[apart, apart, apart]]))
    np.testing.assert_array_equal(result.per_image, 1.0)


def test_two_raters_may_come_in_either_order():
    swapped = [[raters[1], raters[0]] for raters in TWO_RATERS]
    one, other = detection_alpha(table_of(TWO_RATERS)), detection_alpha(table_of(swapped))
    np.testing.assert_allclose(one.per_image, other.per_image, atol=1e-12)


def test_raters_are_linked_in_sorted_order_whatever_the_file_says():
    images = {"x": dict(zip("CAB", THREE_RATERS, strict=True))}
    again = {"x": {name: images["x"][name] for name in "BCA"}}
    one, other = (detection_alpha(DetectionTable.from_boxes(part)).per_image for part in (images, again))
    np.testing.assert_array_equal(one, other)


def test_images_may_have_different_raters():
    table = DetectionTable.from_boxes({
        "x": {"A": [(1, [0, 0, 9, 9])], "B": [(1, [0, 0, 9, 9])]},
        "y": {"C": [(2, [0, 0, 9, 9])], "A": [], "B": [(2, [0, 0, 9, 9])]},
    })  # fmt: skip
    assert table.slot.tolist() == [0, 1, 1, 2]
    assert unit_labels(table, link_units(table, find_overlaps(table), 0.5)) == [[("1", "1")], [("*", "2", "2")]]


def test_the_default_thresholds_are_those_of_coco():
    np.testing.assert_allclose(IOU_THRESHOLDS, np.linspace(0.5, 0.95, 10), atol=1e-12)
    assert len(detection_alpha(table_of(TWO_RATERS)).mean_image) == 10


class TestBadInput:
    def test_an_image_with_one_rater(self):
        table = DetectionTable.from_boxes({"x": {"ann": []}, "y": {"ann": [], "bob": []}})
        with pytest.raises(InputError, match="image 'x' was seen only by 'ann'"):
            detection_alpha(table)

    def test_no_image(self):
        with pytest.raises(InputError, match="no images"):
            detection_alpha(DetectionTable.from_boxes({}))

    @pytest.mark.parametrize("box", [[0, 0, -1, 5], [0, 0, 5, -1]])
    def test_a_negative_box(self, box):
        with pytest.raises(InputError, match="width and height of at least 0"):
            DetectionTable.from_boxes({"x": {"ann": [(1, box)], "bob": []}})

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_box_that_is_not_finite(self, value):
        with pytest.raises(InputError, match=r"finite.*annotation 2"):
            DetectionTable.from_boxes({"x": {"ann": [(1, [0, 0, 1, 1]), (1, [value, 0, 1, 1])], "bob": []}})

    @pytest.mark.parametrize("thresholds", [[], [0.0], [-0.1], [0.5, 1.5]])
    def test_thresholds(self, thresholds):
        with pytest.raises(UsageError, match="thresholds"):
            detection_alpha(table_of(TWO_RATERS), thresholds)

    def test_a_choice_that_is_none(self):
        with pytest.raises(UsageError, match="empty must be one of"):
            detection_alpha(table_of(TWO_RATERS), empty="zero")


class TestMatchings:
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12, unique=True))
    def test_the_largest_matching_is_as_large_as_brute_force(self, pairs):
        left, right = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
        chosen = largest_matching(left, right)
        assert len(set(left[chosen])) == len(set(right[chosen])) == chosen.sum()
        best = max(sum((i, j) in pairs for i, j in enumerate(order)) for order in permutations(range(5)))
        assert chosen.sum() == best

    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(5, 9)), max_size=12), st.integers(0, 1000))
    def test_the_greedy_choice_is_that_of_one_at_a_time(self, pairs, seed):
        score = np.random.default_rng(seed).integers(0, 4, len(pairs)) / 4
        nodes = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        used, expected = set(), []
        for entry in sorted(range(len(pairs)), key=lambda entry: -score[entry]):
            if not used & set(pairs[entry]):
                used |= set(pairs[entry])
                expected.append(entry)
        assert np.flatnonzero(greedy_disjoint(nodes, score)).tolist() == sorted(expected)

    def test_nothing_to_choose_from(self):
        none = np.empty(0, dtype=np.int64)
        assert not len(best_assignment(none, none, np.empty(0)))
        assert not len(largest_matching(none, none))
