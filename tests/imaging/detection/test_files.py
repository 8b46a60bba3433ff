"""Reading boxes and masks: tables, COCO JSON, who looked, and what is refused."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.imaging.detection.agreement import detection_alpha
from softgold.imaging.detection.boxes import DetectionTable, find_overlaps
from softgold.imaging.detection.files import read_detections
from softgold.imaging.detection.masks import decode_counts, mask_area, to_rle
from softgold.imaging.detection.precision import modified_map
from softgold.imaging.detection.variation import variation_types

ROWS = [
    ("007", "ann", "cat", 0, 0, 10, 10),
    ("007", "bob", "cat", 1, 0, 10, 10),
    ("8", "ann", None, None, None, None, None),
    ("8", "bob", "cat", 5, 5, 10, 10),
]
NAMES = ["image", "annotator", "category", "x", "y", "w", "h"]


def frame(rows=ROWS, names=NAMES):
    return pd.DataFrame(rows, columns=names)


def coco(**changes):
    data = {
        "images": [
            {"id": 10, "height": 40, "width": 40, "raters": ["ann", "bob"]},
            {"id": 2, "height": 40, "width": 40},
        ],
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
        "annotations": [
            note(1, 10, "ann", 0, [0, 0, 10, 10]),
            note(2, 2, "ann", 1, [0, 0, 10, 10]),
            note(3, 2, "bob", 1, [0, 0, 10, 9]),
            note(4, 2, "bob", 0, [20, 20, 10, 10]),
        ],
    }
    return {**data, **changes}


def note(number, image, rater, category, box, **extra):
    return {"id": number, "image_id": image, "rater": rater, "category_id": category, "bbox": box} | extra


def write(tmp_path, data, name="boxes.json"):
    path = tmp_path / name
    text = json.dumps(data).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


class TestTables:
    def test_an_empty_row_is_a_look(self, tmp_path):
        path = tmp_path / "boxes.csv"
        frame().to_csv(path, index=False)
        table = read_detections(path)
        assert list(table.image_ids) == ["007", "8"]
        assert table.raters_per_image.tolist() == [2, 2]
        assert table.image.tolist() == [0, 0, 1]
        np.testing.assert_array_equal(table.boxes[1], [1, 0, 10, 10])

    def test_other_names(self):
        renamed = frame(names=["image_id", "rater", "class_name", "x", "y", "width", "height"])
        assert len(read_detections(renamed)) == 3
        odd = frame(names=["slide", "who", "kind", "x", "y", "w", "h"])
        assert len(read_detections(odd, image="slide", annotator="who", category="kind")) == 3

    def test_the_order_of_the_file_is_kept_within_a_rater(self):
        rows = [("i", "b", "c", 9, 0, 1, 1), ("i", "a", "c", 1, 0, 1, 1), ("i", "b", "c", 3, 0, 1, 1)]
        assert read_detections(frame(rows)).boxes[:, 0].tolist() == [1, 9, 3]

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            (("8", "bob", "cat", 5, 5, -1, 10), r"width and height of at least 0.*row 5"),
            (("8", "bob", "cat", 5, 5, None, 10), r"row 5, column 'w': a box needs all of x, y, w, h"),
            (("8", "bob", "cat", 5, "wide", 1, 10), r"row 5, column 'y': a side must be a finite number, got 'wide'"),
            (("8", "bob", "cat", 5, float("inf"), 1, 10), r"row 5, column 'y': a side must be a finite number"),
            (("8", "bob", None, 5, 5, 1, 10), r"row 5, column 'category': the id is missing"),
            (("8", None, "cat", 5, 5, 1, 10), r"row 5, column 'annotator': the id is missing"),
        ],
    )
    def test_bad_rows(self, row, message):
        with pytest.raises(InputError, match=message):
            read_detections(frame([*ROWS, row]))

    def test_a_missing_column(self):
        with pytest.raises(InputError, match="has no category column"):
            read_detections(frame().drop(columns="category"))

    def test_masks_are_not_in_a_table(self):
        with pytest.raises(InputError, match="COCO JSON"):
            read_detections(frame(), masks=True)


class TestWhoLooked:
    SINGLE = (*ROWS, ("9", "ann", "cat", 0, 0, 5, 5))

    def test_an_image_with_one_rater_is_refused(self):
        with pytest.raises(InputError, match=r"image '9' was seen only by 'ann'.*--looked all.*--single skip"):
            read_detections(frame(self.SINGLE))

    def test_it_can_be_skipped(self):
        with pytest.warns(DataWarning, match="1 image was seen by fewer than two raters and left out"):
            table = read_detections(frame(self.SINGLE), single="skip")
        assert list(table.image_ids) == ["007", "8"]

    def test_or_the_other_looked_and_saw_nothing(self):
        table = read_detections(frame(self.SINGLE), looked="all")
        assert table.raters_per_image.tolist() == [2, 2, 2]

    def test_nothing_is_left(self):
        with pytest.raises(InputError, match="no image was seen by two raters"):
            read_detections(frame(ROWS[:1]), single="skip")

    def test_a_category_of_one_rater(self):
        rows = [*ROWS, ("8", "bob", "Cat", 50, 5, 10, 10)]
        with pytest.raises(InputError, match="category 'Cat' was used by one rater only, 'bob'"):
            read_detections(frame(rows))
        assert len(read_detections(frame(rows), lone_categories="keep")) == 4

    def test_flat_boxes_are_told(self):
        with pytest.warns(DataWarning, match="1 annotation has no area"):
            read_detections(frame([*ROWS, ("8", "ann", "cat", 0, 0, 0, 5)]))

    @pytest.mark.parametrize("option", ["looked", "single", "lone_categories"])
    def test_choices(self, option):
        with pytest.raises(UsageError, match=f"{option} must be one of"):
            read_detections(frame(), **{option: "maybe"})


class TestCoco:
    @pytest.mark.parametrize("name", ["boxes.json", "boxes.json.gz"])
    def test_images_ascend_by_number(self, tmp_path, name):
        table = read_detections(write(tmp_path, coco(), name), lone_categories="keep")
        assert list(table.image_ids) == ["2", "10"]
        assert list(table.category_names) == ["cat", "dog"]
        assert table.raters_per_image.tolist() == [2, 2]
        assert table.image.tolist() == [0, 0, 0, 1]

    def test_legacy_knows_category_zero(self, tmp_path):
        table = read_detections(write(tmp_path, coco()), lone_categories="keep")
        assert detection_alpha(table, [0.5]).per_image[0, 1] == 0.0
        assert detection_alpha(table, [0.5], legacy=True).per_image[0, 1] == 1.0

    def test_crowds_are_left_out(self, tmp_path):
        crowd = note(9, 2, "bob", 1, [0, 0, 30, 30], iscrowd=1)
        data = coco(annotations=[*coco()["annotations"], crowd])
        with pytest.warns(DataWarning, match="1 crowd regions were left out"):
            assert len(read_detections(write(tmp_path, data), lone_categories="keep")) == 4

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"annotations": [note(7, 2, "ann", 1, [0, 0, -5, 5])]}, r"annotations\[0\] \(id 7\)"),
            ({"annotations": [note(7, 2, "ann", 1, [0, 0, float("nan"), 5])]}, "four finite numbers"),
            ({"annotations": [note(7, 2, "ann", 1, [0, 0, 5])]}, "'bbox' must be four numbers"),
            ({"annotations": [note(7, 3, "ann", 1, [0, 0, 5, 5])]}, "image_id '3' is not listed"),
            ({"annotations": [note(7, 2, "ann", 5, [0, 0, 5, 5])]}, "category_id '5' is not listed"),
            ({"annotations": [note(7, 2, None, 1, [0, 0, 5, 5])]}, "'rater' must be a text or a number, got None"),
            ({"annotations": [note(7, 2, "ann", 1, [0, 0, 5, 5], annotator="x")]}, "several keys for the rater"),
            ({"annotations": [{"image_id": 2, "category_id": 1, "bbox": [0, 0, 5, 5]}]}, "no annotation says who"),
            ({"annotations": {}}, "needs a list of objects under 'annotations'"),
            ({"images": [{"id": 1}, {"id": 1}]}, "the id '1' is duplicated"),
            ({"images": [{"id": 2, "raters": "ann"}, {"id": 10}]}, "who looked must be a list"),
        ],
    )
    def test_bad_files(self, tmp_path, changes, message):
        with pytest.raises(InputError, match=message):
            read_detections(write(tmp_path, coco(**changes)), lone_categories="keep")

    def test_files_that_are_none(self, tmp_path):
        (tmp_path / "broken.json").write_text('{"images": [')
        (tmp_path / "list.json").write_text("[]")
        (tmp_path / "broken.json.gz").write_bytes(b"no gzip")
        for name, message in (
            ("broken.json", "is not JSON"),
            ("list.json", "is not COCO"),
            ("none.json", "cannot read"),
        ):
            with pytest.raises(InputError, match=message):
                read_detections(tmp_path / name)
        with pytest.raises(InputError, match="is not JSON"):  # what a file is, its content says
            read_detections(tmp_path / "broken.json.gz")


def disc(x, y, radius, size=40):
    """A disc as uncompressed run lengths, column by column."""
    rows, columns = np.mgrid[:size, :size]
    flat = ((columns - x) ** 2 + (rows - y) ** 2 <= radius**2).ravel(order="F").astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat, [1 - flat[-1]]])))
    return {"size": [size, size], "counts": np.diff(np.concatenate([[0], edges])).tolist()}


def pixels(run_lengths):
    counts = run_lengths["counts"]
    return np.repeat(np.arange(len(counts)) % 2, counts).astype(bool)


class TestMasks:
    def study(self, tmp_path, drawn):
        notes = [
            note(i, 2, rater, category, [0, 0, 1, 1], segmentation=mask)
            for i, (rater, category, mask) in enumerate(drawn)
        ]
        data = coco(images=[{"id": 2, "height": 40, "width": 40}], annotations=notes)
        return read_detections(write(tmp_path, data), masks=True, looked="all", lone_categories="keep")

    def test_overlaps_are_those_of_the_pixels(self, tmp_path):
        masks = [disc(10, 10, 8), disc(28, 28, 6), disc(12, 10, 8), disc(27, 30, 7)]
        table = self.study(tmp_path, [(rater, 0, mask) for rater, mask in zip("aabb", masks, strict=True)])
        found = find_overlaps(table)
        for first, second, iou in zip(found.first, found.second, found.iou, strict=True):
            a, b = pixels(masks[first]), pixels(masks[second])
            assert iou == pytest.approx((a & b).sum() / (a | b).sum(), abs=1e-12)
        assert len(found.iou) == 2
        np.testing.assert_array_equal(mask_area(table.masks), [pixels(mask).sum() for mask in masks])

    def test_polygons_and_run_lengths_agree(self, tmp_path):
        square = [[4, 4, 20, 4, 20, 20, 4, 20]]
        rle = to_rle(square, 40, 40, "here")
        compressed = {"size": [40, 40], "counts": rle["counts"].decode()}
        table = self.study(tmp_path, [("a", 0, square), ("b", 0, compressed)])
        assert find_overlaps(table).iou.tolist() == [1.0]
        assert modified_map(table).map == pytest.approx(1.0)
        assert detection_alpha(table).alpha == 1.0

    def test_a_mask_that_two_cover_is_merged(self, tmp_path):
        left, right = [[0, 0, 10, 0, 10, 20, 0, 20]], [[10, 0, 20, 0, 20, 20, 10, 20]]
        both = [[0, 0, 20, 0, 20, 20, 0, 20]]
        table = self.study(tmp_path, [("a", 0, left), ("a", 0, right), ("b", 0, both)])
        assert variation_types(table, [0.6]).total()["merge"] == 1

    @pytest.mark.parametrize(
        ("mask", "message"),
        [
            ([[0, 0, 5, 5]], "three or more points"),
            ([], "three or more points"),
            ([[0, 0, 5, 0, 5, None]], "three or more points"),
            ({"size": [10, 10], "counts": [100]}, "like its image"),
            ({"size": [40, 40], "counts": [5, 5]}, "add up to 1600"),
            ({"size": [40, 40], "counts": "0000000000ooo"}, "add up to 1600"),
            ({"size": [40, 40], "counts": "~~~~~~~~"}, "add up to 1600"),
            ({"size": [40, 40], "counts": "\ud800"}, "add up to 1600"),
            ({"size": [40, 40], "counts": "o" * 10_000}, "add up to 1600"),
            ({"size": 40, "counts": [1600]}, "like its image"),
            ([[2147483648, 0, 2147483648, 2147483648, 0, 2147483648]], "far outside"),
            ([[0, 0, 1e300, 1e300, 0, 1e300]], "far outside"),
            ([[0, 0, 10**400, 0, 5, 5]], "three or more points"),
            ([[0, 0, True, 0, 5, 5]], "three or more points"),
            ([[-400, -400, 400, 400] * 10_000], "outline"),
        ],
    )
    def test_bad_masks(self, tmp_path, mask, message):
        with pytest.raises(InputError, match=message):
            self.study(tmp_path, [("a", 0, mask), ("b", 0, mask)])

    @pytest.mark.parametrize("side", [1e20, 10**400, 0, -5, 2.5, float("nan"), True, "40", None])
    def test_image_sizes_that_no_mask_has(self, tmp_path, side):
        data = coco()
        for image in data["images"]:
            image |= {"height": side, "width": 40}
        with pytest.raises(InputError, match="'height' of the image"):
            read_detections(write(tmp_path, data), masks=True)

    def test_numbers_of_thousands_of_digits(self, tmp_path):
        path = tmp_path / "boxes.json"
        path.write_text(json.dumps(coco()).replace('"id": ', '"id": 1' + "0" * 5000, 1))
        with pytest.raises(InputError, match="not JSON that can be read"):
            read_detections(path)
        data = coco()
        data["annotations"][0]["bbox"][0] = 10**400
        with pytest.raises(InputError, match="too large"):
            read_detections(write(tmp_path, data))

    def test_compressed_run_lengths_are_those_of_pycocotools(self):
        from pycocotools import mask as reference

        random = np.random.default_rng(0)
        for _ in range(200):
            height, width = random.integers(1, 60, 2)
            drawn = np.asfortranarray(random.random((height, width)) < random.random(), dtype=np.uint8)
            flat = drawn.ravel(order="F")
            ends = np.flatnonzero(np.diff(flat, prepend=0)).tolist()
            expected = np.diff([0, *ends, flat.size]).tolist()
            assert decode_counts(reference.encode(drawn)["counts"]) == expected

    def test_masks_that_are_not_there(self, tmp_path):
        with pytest.raises(InputError, match="no 'segmentation'"):
            read_detections(write(tmp_path, coco()), masks=True)


def test_a_table_of_nothing_drawn():
    rows = [("i", rater, *[None] * 5) for rater in "ab"]
    table = read_detections(frame(rows))
    assert isinstance(table, DetectionTable)
    assert (len(table), table.n_images) == (0, 1)
