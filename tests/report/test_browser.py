"""The report in a real browser: nothing fails, nothing is blank, nothing sticks out, and the sort sorts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgold.cli import main
from softgold.report import write_report
from softgold.report.blocks import Cell, Panel, Section, Table, amount, interval, named, percent
from softgold.report.html import render_page
from softgold.report.pages import Page

SECTIONS = ["data", "soft-labels", "experts", "models", "annotators", "next", "fit", "about"]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None, reason="no Chromium with its driver is installed: the report is not opened"
    ),
]


@pytest.fixture(scope="module")
def report(full_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(full_run, tmp_path_factory.mktemp("browser") / "report.html")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    browser.get("about:blank")  # Chromium's own start page would go on loading, and be seen in the log of requests
    yield browser
    browser.quit()


def open_at(driver: object, page: Path, width: int, scheme: str = "light") -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.as_uri())


def test_no_errors_and_no_requests_beyond_the_page(driver: object, report: Path) -> None:
    import json

    for kind in ("browser", "performance"):
        driver.get_log(kind)
    open_at(driver, report, 1400)
    assert [entry for entry in driver.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}] == []
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert {address for address in asked if not address.startswith("data:")} <= {report.as_uri()}
    assert not [event for event in events if event["method"] == "Network.loadingFailed"]


def test_every_section_is_there_and_reached_from_the_list(driver: object, report: Path) -> None:
    open_at(driver, report, 1400)
    shown = driver.execute_script("return [...document.querySelectorAll('main section')].map(s => s.id)")
    assert shown == SECTIONS
    links = driver.execute_script("return [...document.querySelectorAll('nav a')].map(a => a.getAttribute('href'))")
    assert links == [f"#{key}" for key in SECTIONS]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_not_blank_and_their_text_is_legible(driver: object, report: Path, scheme: str) -> None:
    open_at(driver, report, 1400, scheme)
    figures = driver.execute_script(
        """return [...document.querySelectorAll('figure svg')].map(svg => {
            const box = svg.getBoundingClientRect();
            const marks = [...svg.querySelectorAll('rect, circle, polygon, polyline')];
            const visible = marks.filter(mark => {
                const b = mark.getBoundingClientRect();
                return b.width + b.height > 1;
            });
            const texts = [...svg.querySelectorAll('text')].map(t => {
                const b = t.getBoundingClientRect();
                return [t.textContent, b.left - box.left, box.right - b.right, b.height];
            });
            const label = svg.getAttribute('aria-label');
            return {width: box.width, height: box.height, marks: visible.length, label, texts};
        })"""
    )
    assert len(figures) >= 12
    for figure in figures:
        assert figure["width"] > 300, figure["label"]
        assert figure["height"] > 100, figure["label"]
        assert figure["marks"] >= 1, figure["label"]
        assert len(figure["label"]) > 20
        for words, left, right, height in figure["texts"]:
            assert left >= -1, words
            assert right >= -1, words
            assert height > 8, words
    ink, paper = driver.execute_script(
        "const style = getComputedStyle(document.body);"
        "return [style.color, style.backgroundColor].map(colour => colour.match(/[0-9]+/g).map(Number))"
    )
    assert abs(sum(ink[:3]) - sum(paper[:3])) > 450
    assert (sum(paper[:3]) > sum(ink[:3])) == (scheme == "light")


def test_text_of_a_chart_can_be_selected(driver: object, report: Path) -> None:
    open_at(driver, report, 1400)
    chosen = driver.execute_script(
        """const text = document.querySelector('figure svg text.label');
        const range = document.createRange(); range.selectNodeContents(text);
        getSelection().removeAllRanges(); getSelection().addRange(range);
        return [getSelection().toString(), text.textContent]"""
    )
    assert chosen[0].strip() == chosen[1].strip() != ""


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_sticks_out(driver: object, report: Path, width: int) -> None:
    open_at(driver, report, width)
    # Tables that are shown on demand must not stick out either.
    driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    driver.execute_script("window.scrollTo(500, 0)")
    assert driver.execute_script("return window.scrollX") == 0


@pytest.mark.parametrize("width", [400, 1200])
def test_every_row_of_a_whole_table_is_in_view(driver: object, tmp_path: Path, width: int) -> None:
    columns = ("question", "items", "positive", "in doubt", "expected wrong", "threshold", "agreement with experts")
    numbers = (amount(500), percent(0.374), amount(123), percent(0.158), interval(0.235, 0.031, 0.66))
    cells = (*numbers, Cell("84.2 % (61–87)", 84.2))
    rows = tuple((named(f"Enlarged Cardiomediastinum {at}"), *cells) for at in range(40))
    section = Section("overview", "Overview", "", (Panel(tables=(Table(columns, rows, is_whole=True),)),))
    path = tmp_path / "page.html"
    path.write_text(render_page(Page("study", "", (), (section,), (), frozenset())), encoding="utf-8")
    open_at(driver, path, width)
    sizes = "const box = document.querySelector('.scroll'); return [box.scrollHeight - box.clientHeight, "
    sizes += "box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth]"
    hidden_below, hidden_right, page_width = driver.execute_script(sizes)
    assert hidden_below == 0
    assert page_width <= width
    assert width < 1200 or hidden_right == 0


def test_the_sort_sorts(driver: object, report: Path) -> None:
    open_at(driver, report, 1400)
    script = """
        const table = [...document.querySelectorAll('#annotators table')].find(t => t.rows.length > 20);
        const heads = [...table.tHead.rows[0].cells];
        const column = heads.findIndex(head => head.textContent === arguments[0]);
        heads[column].querySelector('button').click();
        const cells = [...table.tBodies[0].rows].map(row => row.cells[column].textContent);
        return [heads[column].getAttribute('aria-sort'), cells];
    """
    for way in ("descending", "ascending"):
        state, cells = driver.execute_script(script, "votes")
        values = [int(cell.replace(",", "")) for cell in cells]
        assert state == way
        assert values == sorted(values, reverse=way == "descending")
        assert len(set(values)) > 5
    state, names = driver.execute_script(script, "annotator")
    assert (state, names) == ("ascending", sorted(names))


def test_tasks_can_be_switched_and_all_are_read_without_the_script(
    driver: object, report: Path, tmp_path: Path
) -> None:
    page = report.read_text(encoding="utf-8")
    start, end = page.index('<section id="models">'), page.index('<section id="next">')
    panel = '<div class="panel" data-name="{0}"><h3>{0}</h3><p class="words">{0} words</p></div>'
    two = f'<section id="models">{panel.format("heart")}{panel.format("lung")}</section>'
    changed = tmp_path / "tasks.html"
    changed.write_text(page[:start] + two + page[end:], encoding="utf-8")
    panels = "[...document.querySelectorAll('.panel[data-name]')]"
    shown = f"return {panels}.filter(p => p.offsetParent).map(p => p.dataset.name)"
    open_at(driver, changed, 1400)
    assert driver.execute_script(shown) == ["heart"]
    driver.execute_script("[...document.querySelectorAll('.switch button')].at(-1).click()")
    assert driver.execute_script(shown) == ["lung"]
    changed.write_text(page[:start] + two + page[end:].split("<script>")[0] + "</body></html>", encoding="utf-8")
    open_at(driver, changed, 1400)
    assert driver.execute_script(shown) == ["heart", "lung"]


BOXES = "image,annotator,category,x,y,w,h\n" + "".join(
    f"a_long_name_of_an_image_without_space_{image}.png,{rater},{kind},0,0,{10 + image % 7 * (rater == 'bob')},10\n"
    for image in range(40)
    for rater, kind in (("ann", "cat"), ("bob", "dog" if image % 5 == 0 else "cat"))
)


@pytest.mark.parametrize("width", [400, 1400])
def test_label_convergence_does_not_stick_out_and_has_its_figures(driver: object, tmp_path: Path, width: int) -> None:
    (tmp_path / "boxes.csv").write_text(BOXES + "i,ann,dog,0,0,5,5\ni,bob,dog,0,0,5,5\n")
    assert main(["convergence", str(tmp_path / "boxes.csv"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert main(["report", str(tmp_path / "out"), "--quiet"]) == 0
    driver.get_log("browser")
    open_at(driver, tmp_path / "out" / "report.html", width)
    driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.execute_script("return document.querySelectorAll('#convergence figure svg').length") == 4
    assert [entry for entry in driver.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}] == []
