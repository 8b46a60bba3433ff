"""`softgold convergence`: what it writes, says and refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from softgold.imaging.detection.files import read_detections
from softgold.imaging.detection.precision import modified_map


@pytest.fixture
def boxes(tmp_path):
    """A study of 40 images and two raters, who differ a little."""
    rng = np.random.default_rng(0)
    rows = []
    for image in range(40):
        for thing in range(4):
            box = np.array([40.0 * thing, 0, 30, 30])
            for rater in ("ann", "bob"):
                if rng.random() > 0.1:
                    kind = "cat" if rng.random() > 0.2 else "dog"
                    rows.append((f"i{image}", rater, kind, *(box + rng.normal(0, 1.5, 4)).round(2)))
    path = tmp_path / "boxes.csv"
    pd.DataFrame(rows, columns=["image", "annotator", "category", "x", "y", "w", "h"]).to_csv(path, index=False)
    return path


def test_it_writes_what_the_library_finds(cli, boxes, tmp_path):
    answer = cli("convergence", boxes, "-o", tmp_path / "out", "--subsets", 100)
    assert answer.code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "convergence.json",
        "images.csv",
        "pairs.csv",
        "subsets.csv",
        "thresholds.csv",
        "variation.csv",
    ]
    found = json.loads((tmp_path / "out" / "convergence.json").read_text())
    assert found["map"] == pytest.approx(modified_map(read_detections(boxes)).map)
    assert found["map_interval"]["n_subsets"] == 100
    assert found["sentence"] in answer.err
    assert "is fitting one annotator's habits" in answer.err
    assert answer.out == ""
    assert len(pd.read_csv(tmp_path / "out" / "subsets.csv")) == 100
    assert len(pd.read_csv(tmp_path / "out" / "variation.csv")) == 10


def test_json_and_quiet(cli, boxes, tmp_path):
    options = ("--subsets", 20, "--quiet", "--json", "--confidence", "coco", "--alpha", "pooled", "--iou", "0.5,0.75")
    answer = cli("convergence", boxes, "-o", tmp_path / "out", *options)
    assert (answer.code, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert [row["threshold"] for row in found["thresholds"]] == [0.5, 0.75]
    assert found["settings"]["confidence"] == "coco"
    assert found["alpha"] == pytest.approx(np.mean([row["alpha_pooled"] for row in found["thresholds"]]))
    assert found == json.loads((tmp_path / "out" / "convergence.json").read_text())


def test_the_same_seed_writes_the_same(cli, boxes, tmp_path):
    for name in ("one", "two"):
        assert cli("convergence", boxes, "-o", tmp_path / name, "--subsets", 20, "--seed", 3).code == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_an_existing_folder_is_kept(cli, boxes, tmp_path):
    out = tmp_path / "out"
    assert cli("convergence", boxes, "-o", out, "--subsets", 20).code == 0
    answer = cli("convergence", boxes, "-o", out, "--subsets", 20)
    assert answer.code == 2
    assert "--force" in answer.err
    assert cli("convergence", boxes, "-o", out, "--subsets", 20, "--force").code == 0


ROWS = ["i,ann,cat,0,0,10,10", "i,bob,cat,0,0,10,10", "j,ann,cat,0,0,10,10", "j,bob,cat,0,0,10,10"]


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ("i,bob,cat,0,0,-1,10", (), "width and height of at least 0"),
        ("i,bob,cat,0,0,nan,10", (), "a box needs all of x, y, w, h"),
        ("i,bob,cat,0,0,wide,10", (), "must be a finite number, got 'wide'"),
        ("k,bob,cat,0,0,10,10", (), "image 'k' was seen only by 'bob'"),
        ("i,bob,dog,0,0,10,10", (), "category 'dog' was used by one rater only, 'bob'"),
        (ROWS[0], ("--iou", "0.5:0:0.9"), "--iou must be"),
        (ROWS[0], ("--iou", "0.5:1e-9:0.9"), "--iou must be"),
        (ROWS[0], ("--iou", "0.9:0.1:0.5"), "--iou must be"),
        (ROWS[0], ("--iou", "nan"), "must be finite"),
        (ROWS[0], ("--iou", "1.5"), "must lie in (0, 1]"),
        (ROWS[0], ("--fraction", "1"), "fraction must lie in (0, 1)"),
        (ROWS[0], ("--masks",), "masks are read from COCO JSON"),
        (ROWS[0], ("--confidence", "random"), "--confidence"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(cli, tmp_path, row, options, message):
    path = tmp_path / "boxes.csv"
    path.write_text("\n".join(["image,annotator,category,x,y,w,h", *ROWS, row]) + "\n")
    answer = cli("convergence", path, "-o", tmp_path / "out", *options)
    assert answer.code == 2
    assert message in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there(cli, tmp_path):
    answer = cli("convergence", tmp_path / "none.json", "-o", tmp_path / "out")
    assert answer.code == 2
    assert "cannot read" in answer.err
