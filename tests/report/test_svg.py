"""Scales, ticks and charts: positions by hand, text that stays text, names that are escaped."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from softgold.report.plots import (
    Mark,
    Point,
    Spread,
    curve,
    histogram,
    paired_bars,
    scatter,
    slope,
    spaced,
    spreads,
)
from softgold.report.svg import Canvas, Scale, nice_ticks

EVIL = '<script>alert("1")</script>&'
WORDS = {"title": "T", "description": f"says {EVIL}"}
CHARTS = {
    "histogram": lambda: histogram([0, 0.5, 1], [3, 5], x_title=EVIL, marks=[Mark(0.9, EVIL)]),
    "log histogram": lambda: histogram([0, 1, 2, 3, 4], [1, 1, 1, 5000], x_title="x"),
    "empty histogram": lambda: histogram([0, 1], [0], x_title="x"),
    "named histogram": lambda: histogram([0, 1, 2], [1, 2], x_title="x", labels=[EVIL, "b"]),
    "spreads": lambda: spreads([Spread(0, 1, 0, 2, EVIL, True)], x_title="x", y_title="y", zero=EVIL),
    "curve": lambda: curve([(0, 1), (1, 1)], x_title="x", y_title="y"),
    "one point": lambda: curve([(0.5, 0.0)], x_title="x", y_title="y"),
    "scatter": lambda: scatter([Point(EVIL, 0.5, 0.6)], x_title="x", y_title="y"),
    "crowded scatter": lambda: scatter([Point(str(i), 0.5, 0.6) for i in range(60)], x_title="x", y_title="y"),
    "slope": lambda: slope(
        [EVIL, "b"], [1, 2], [2, 1], place_names=(["1", "2"], ["2", EVIL]), left_title="l", right_title="r"
    ),
    "bars": lambda: paired_bars([(EVIL, -0.2, 0.5)], names=("a", "b"), x_title="x"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_sound_xml_with_text_and_a_description(name: str) -> None:
    text = str(CHARTS[name]().render(**WORDS))
    root = ET.fromstring(text)
    assert root.attrib["role"] == "img"
    assert root.find("desc").text == f"says {EVIL}"
    assert root.findall(".//text")
    assert root.find(".//script") is None
    assert "nan" not in text
    width, height = (float(part) for part in root.attrib["viewBox"].split()[2:])
    for mark in [*root.iter("circle"), *root.iter("rect")]:
        x, y = float(mark.get("cx") or mark.get("x")), float(mark.get("cy") or mark.get("y"))
        assert 0 <= x <= width
        assert 0 <= y <= height


def test_a_bar_is_as_high_as_its_count() -> None:
    root = ET.fromstring(str(histogram([0, 1, 2], [10, 20], x_title="x").render(**WORDS)))
    heights = [float(bar.attrib["height"]) for bar in root.iter("rect")]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert [bar[0].text for bar in root.iter("rect")] == ["0 to 1: 10", "1 to 2: 20"]


def test_points_lie_where_their_values_are() -> None:
    points = [Point("a", 0.2, 0.3), Point("b", 0.6, 0.3), Point("c", 0.4, 0.7)]
    root = ET.fromstring(str(scatter(points, x_title="x", y_title="y").render(**WORDS)))
    a, b, c = ((float(dot.get("cx")), float(dot.get("cy"))) for dot in root.iter("circle"))
    assert c[0] == pytest.approx((a[0] + b[0]) / 2, abs=0.1)
    assert a[1] == b[1] > c[1]


def test_lines_of_a_slope_chart_cross_for_models_that_swap() -> None:
    root = ET.fromstring(
        str(
            slope(
                ["a", "b", "c"],
                [1, 2, 3],
                [2, 1, 3],
                place_names=("123", "213"),
                left_title="l",
                right_title="r",
            ).render(**WORDS)
        )
    )
    ends = {
        line.get("class"): (float(line.get("y1")), float(line.get("y2")))
        for line in root.iter("line")
        if line.get("class", "").startswith("slope")
    }
    assert ends["slope-down"][0] == ends["slope-up"][1]
    assert ends["slope-down"][1] == ends["slope-up"][0]
    assert ends["slope-same"][0] == ends["slope-same"][1]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 8.8), (0.8612, 0.8623), (1e6, 3e6), (-1e-7, 1e-7)])
def test_ticks_are_inside_and_few(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-9 * abs(low) <= tick <= high * (1 + 1e-9) for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_scales() -> None:
    assert Scale(3, 3, 0, 10)(3) == 5
    assert Scale(1, 1000, 0, 30, log=True).ticks() == [1, 10, 100, 1000]
    assert nice_ticks(2, 2) == [2]
    canvas = Canvas()
    assert canvas.y_scale(0, 1)(0) > canvas.y_scale(0, 1)(1)


def test_labels_are_moved_apart_and_stay_inside() -> None:
    found = spaced([5, 5, 5, 95, 96], 10, 0, 100)
    assert all(b - a >= 10 - 1e-9 for a, b in pairwise(found))
    assert found[0] >= 0
    assert found[-1] <= 100
