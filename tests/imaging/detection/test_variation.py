"""Types of variation: worked examples, a plain re-implementation, masks."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgold.errors import InputError, UsageError
from softgold.imaging.detection.boxes import DetectionTable, box_iou, find_overlaps
from softgold.imaging.detection.merges import find_merges
from softgold.imaging.detection.variation import TYPES, variation_types

A = [
    (1, [0, 0, 10, 10]),
    (1, [30, 0, 10, 10]),
    (1, [40, 0, 10, 10]),
    (2, [60, 0, 10, 10]),
    (3, [100, 0, 10, 10]),
    (3, [110, 0, 10, 10]),
    (1, [200, 0, 10, 10]),
]
B = [
    (1, [1, 0, 10, 10]),
    (1, [30, 0, 20, 10]),
    (1, [60, 1, 10, 10]),
    (2, [100, 0, 20, 10]),
    (2, [300, 0, 5, 5]),
    (2, [310, 0, 5, 5]),
]


def table_of(*raters):
    return DetectionTable.from_boxes({"x": dict(zip("ABC", raters, strict=False))})


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0.6, {"correct": 1, "merge": 1, "wrong_class": 1, "merge_wrong_class": 1, "missing": 3}),
        (0.5, {"correct": 2, "merge": 0, "wrong_class": 2, "merge_wrong_class": 0, "missing": 5}),
    ],
)
def test_worked_examples(threshold, expected):
    for raters in ((A, B), (B, A)):
        total = variation_types(table_of(*raters), [threshold]).total()
        assert {name: total[name] for name in expected} == expected


def plain(a, b, threshold):
    """The five steps, one at a time."""

    def iou(one, two):
        return float(box_iou(np.array([one], dtype=float), np.array([two], dtype=float))[0])

    def around(one, two):
        low = np.minimum(one[:2], two[:2])
        high = np.maximum(np.add(one[:2], one[2:]), np.add(two[:2], two[2:]))
        return [*low, *(high - low)]

    sides = (a, b)
    free = [set(range(len(a))), set(range(len(b)))]

    def singles(same):
        for i in sorted(free[0]):
            for j in sorted(free[1]):
                if (a[i][0] == b[j][0]) == same:
                    yield iou(a[i][1], b[j][1]), ((0, i), (1, j))

    def merges(same):
        for side in (0, 1):
            for k in sorted(free[1 - side]):
                for i, j in combinations(sorted(free[side]), 2):
                    one, two, other = sides[side][i], sides[side][j], sides[1 - side][k]
                    if one[0] == two[0] and (one[0] == other[0]) == same:
                        yield iou(around(one[1], two[1]), other[1]), ((1 - side, k), (side, i), (side, j))

    def step(candidates):
        count = 0
        for value, used in sorted(candidates, key=lambda candidate: -candidate[0]):
            if value >= threshold and all(row in free[side] for side, row in used):
                for side, row in used:
                    free[side].discard(row)
                count += 1
        return count

    counts = [step(list(source(same))) for same in (True, False) for source in (singles, merges)]
    return [*counts, len(free[0]) + len(free[1])]


box = st.tuples(*[st.floats(0, 12) for _ in range(2)], *[st.floats(1, 9) for _ in range(2)]).map(list)
drawn = st.lists(st.tuples(st.integers(0, 1), box), max_size=6)


@pytest.mark.slow
@settings(max_examples=150)
@given(drawn, drawn, st.sampled_from([0.3, 0.5, 0.7]))
def test_the_plain_procedure_gives_the_same(a, b, threshold):
    total = variation_types(table_of(a, b), [threshold]).total()
    order = ("correct", "merge", "wrong_class", "merge_wrong_class", "missing")
    assert [total[name] for name in order] == plain(a, b, threshold)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_no_merge_is_overlooked(threshold):
    """Every two of a rater and category against every one of the other rater, by brute force."""
    rng = np.random.default_rng(0)
    images = {
        image: {
            rater: [(int(rng.integers(2)), [*rng.uniform(0, 9, 2), *rng.uniform(0.2, 9, 2)]) for _ in range(7)]
            for rater in "AB"
        }
        for image in range(60)
    }
    table = DetectionTable.from_boxes(images)
    found = {tuple(rows) for rows in find_merges(table, find_overlaps(table), threshold).rows.tolist()}
    expected = set()
    for k in range(len(table)):
        parts = np.flatnonzero((table.image == table.image[k]) & (table.rater != table.rater[k]))
        for i, j in combinations(parts.tolist(), 2):
            low = np.minimum(table.boxes[i, :2], table.boxes[j, :2])
            high = np.maximum(*(table.boxes[row, :2] + table.boxes[row, 2:] for row in (i, j)))
            iou = box_iou(np.concatenate([low, high - low])[None], table.boxes[[k]])[0]
            if table.category[i] == table.category[j] and iou >= threshold:
                expected.add((k, i, j))
    assert len(expected) >= 5
    assert found == expected


@pytest.mark.slow
@given(drawn, drawn)
def test_every_annotation_is_of_one_type(a, b):
    counts = variation_types(table_of(a, b)).counts
    used = 2 * (counts["correct"] + counts["wrong_class"] + counts["bad_boundary"])
    used += 3 * (counts["merge"] + counts["merge_wrong_class"]) + counts["missed_or_additional"]
    assert (used == len(a) + len(b)).all()


def test_a_bad_boundary_is_not_a_missed_thing():
    table = table_of([(1, [0, 0, 10, 10])], [(1, [0, 0, 10, 6])])
    rows = variation_types(table, [0.5, 0.75]).counts.set_index("threshold")
    assert rows.loc[0.5, ["correct", "bad_boundary", "missing"]].tolist() == [1, 0, 0]
    assert rows.loc[0.75, ["correct", "bad_boundary", "missing", "missed_or_additional"]].tolist() == [0, 1, 2, 0]


def test_every_pair_of_raters_is_counted():
    shared = [(1, [0, 0, 10, 10])]
    table = DetectionTable.from_boxes({
        "x": {"A": shared, "B": shared, "C": []},
        "y": {"A": shared, "C": [(2, [0, 0, 10, 10])]},
    })  # fmt: skip
    result = variation_types(table, [0.5])
    found = result.counts[["rater_a", "rater_b", "n_images", "correct", "wrong_class", "missing"]]
    assert found.to_numpy().tolist() == [
        ["A", "B", 1, 1, 0, 0],
        ["A", "C", 2, 0, 1, 1],
        ["B", "C", 1, 0, 0, 1],
    ]
    assert result.images[["image", "rater_a", "rater_b"]].to_numpy().tolist() == [
        ["y", "A", "C"],
        ["x", "A", "C"],
        ["x", "B", "C"],
    ]


def test_images_with_the_most_variations_come_first():
    images = {"calm": {"A": A[:1], "B": B[:1]}, "odd": {"A": A[:1], "B": []}, "wild": {"A": A, "B": []}}
    result = variation_types(DetectionTable.from_boxes(images), [0.5])
    assert result.images["image"].tolist() == ["wild", "odd"]
    assert result.images["n_variations"].tolist() == [7, 1]


def test_nothing_drawn_at_all():
    result = variation_types(table_of([], []))
    assert result.counts[list(TYPES)].to_numpy().sum() == 0
    assert result.images.empty


def test_bad_input():
    with pytest.raises(InputError, match="only by 'A'"):
        variation_types(DetectionTable.from_boxes({"x": {"A": A}}))
    with pytest.raises(UsageError, match="boundary_iou"):
        variation_types(table_of(A, B), boundary_iou=2.0)
