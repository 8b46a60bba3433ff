"""Hostile names through every command's output and through the page."""

from __future__ import annotations

import csv
import json
import re
import shutil
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robustness.conftest import Outcome, Server

HOSTILE = [
    "\x1b[2J\x1b]0;title\x07",
    "\u202eevil\u202c\u2066x\u2069",
    "\x9b31m",
    "bell\x07 back\x08 del\x7f",
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}",
    "[bold red]markup[/bold red]",
    "=HYPERLINK(1)",
    "line\nbreak",
    "carriage\rreturn",
    "x" * 3000,
    "\U000e0041tag",
    "%s %d {0}",
]
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")
QUOTED = {"index": False, "quoting": csv.QUOTE_ALL}  # a carriage return needs quotes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hostile(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in which items, annotators, tasks, experts, models and raters all have such names."""
    folder = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(0)
    items = [f"{name}{n}" for n in range(3) for name in HOSTILE]
    people = HOSTILE[:6]
    truth = {item: int(random.random() < 0.5) for item in items}

    def answers(flip: float, who: list[str]) -> list[tuple[str, str, int]]:
        return [(i, a, truth[i] ^ int(random.random() < flip)) for i in items for a in who]

    pd.DataFrame(answers(0.2, people), columns=["item", "annotator", "vote"]).to_csv(folder / "votes.csv", **QUOTED)
    experts = pd.DataFrame(answers(0.1, HOSTILE[3:5]), columns=["item", "annotator", "label"])
    experts.to_csv(folder / "experts.csv", **QUOTED)
    scores = {name: [truth[item] + random.normal() for item in items] for name in HOSTILE}
    pd.DataFrame({"item": items, **scores}).to_csv(folder / "scores.csv", **QUOTED)
    tasks = {"item": items, "task": [HOSTILE[n % 2] for n in range(len(items))]}
    pd.DataFrame(tasks).to_csv(folder / "items.csv", **QUOTED)
    boxes = [
        {"image": image, "annotator": rater, "category": HOSTILE[0], "x": 0, "y": k, "w": 9, "h": 9}
        for image in HOSTILE
        for k, rater in enumerate(people)
    ]
    pd.DataFrame(boxes).to_csv(folder / "boxes.csv", **QUOTED)
    write_studies(folder, random)
    return folder


def write_studies(folder: Path, random: np.random.Generator) -> None:
    """Write votes on tasks and on classes with such names, new votes, and the export of a platform."""
    asked = [(task, f"{task}{n}", who) for task in HOSTILE for n in range(4) for who in HOSTILE[:4]]
    rows = [(task, item, who, int(random.random() < 0.5)) for task, item, who in asked]
    pd.DataFrame(rows, columns=["task", "item", "annotator", "vote"]).to_csv(folder / "tasks.csv", **QUOTED)
    experts = pd.DataFrame(rows, columns=["task", "item", "annotator", "label"])
    experts[experts["annotator"] == HOSTILE[0]].to_csv(folder / "task_experts.csv", **QUOTED)
    chosen = [(item, who, HOSTILE[int(random.integers(4))]) for _, item, who in asked]
    pd.DataFrame(chosen, columns=["item", "annotator", "vote"]).to_csv(folder / "classes.csv", **QUOTED)
    more = [(f"new {name}", f"new {who}", 1) for name in HOSTILE for who in HOSTILE]
    pd.DataFrame(more, columns=["item", "annotator", "vote"]).to_csv(folder / "more.csv", **QUOTED)
    pd.DataFrame({"annotator": [*HOSTILE, "nobody"]}).to_csv(folder / "crew.csv", **QUOTED)
    exported = []
    for number, name in enumerate(HOSTILE):
        result = {"from_name": HOSTILE[0], "to_name": "text", "type": "choices", "value": {"choices": [name]}}
        answers = [{"completed_by": {"id": k, "email": who}, "result": [result]} for k, who in enumerate(HOSTILE[:3])]
        exported.append({"id": number, "data": {"text": name}, "annotations": answers})
    (folder / "export.json").write_text(json.dumps(exported))


LINES = [
    "describe votes.csv",
    "agreement votes.csv",
    "fit votes.csv -o run --engine coordinate",
    "sample-experts run -o sheet.csv --budget 8",
    "calibrate run --experts experts.csv --n-bootstrap 20",
    "evaluate run --scores scores.csv --items items.csv --task-col task --n-vote-bootstrap 5 --n-bootstrap 20",
    "report run",
    "predict run votes.csv -o predicted.csv",
    "baseline votes.csv -o base.csv",
    "convergence boxes.csv -o agreed --subsets 5 --fraction 0.5",
    "report agreed",
]
MORE_LINES = [
    "next run --budget 5 -o planned.csv",
    "next run --budget 5 --annotators crew.csv -o bought.csv",
    "next run --forecast -o forecast.csv",
    "update run more.csv",
    "import export.json -o imported.csv --names-out names.csv",
    "import export.json -o imported.csv --keep-names --force",
    "describe tasks.csv",
    "agreement tasks.csv",
    "fit tasks.csv -o study --model mean",
    "predict study tasks.csv -o predicted_tasks.csv",
    "calibrate study --experts task_experts.csv --n-bootstrap 20",
    "sample-experts study -o task_sheet.csv --budget 20",
    "report study",
    "describe classes.csv",
    "fit classes.csv -o sorts --model mean",
    "report sorts",
    "predict sorts classes.csv -o predicted_classes.csv",
]
REFUSED = [
    "next study --budget 3",
    "next study --budget 3 --task nothing",
    "predict run tasks.csv",
    "predict study votes.csv",
    "evaluate sorts --scores scores.csv",
    "evaluate study --scores more.csv",
    "update run tasks.csv",
    "calibrate study --experts experts.csv",
    "next run --budget 3 --annotators votes.csv",
    "import votes.csv --question nothing",
]


Answers = list[tuple[str, Outcome]]


@pytest.fixture(scope="module")
def answers(server: Server, hostile: Path) -> Answers:
    """What the commands said that make the pages."""
    return [(line, server.run(*line.split(), folder=hostile)) for line in LINES]


def check_answers(answers: Answers, codes: set[int]) -> None:
    for line, done in answers:
        assert done.code in codes, (line, done.err)
        assert "Traceback" not in done.err
        assert STEERING.search(done.err) is None, line
        assert all(len(text) <= 1000 for text in done.err.splitlines()), line
        if line.startswith(("describe", "agreement")):
            assert STEERING.search(done.out) is None, line


def test_no_name_steers_the_terminal_or_the_page(server: Server, hostile: Path, answers: Answers) -> None:
    check_answers(answers, codes={0})
    check_answers([(line, server.run(*line.split(), folder=hostile)) for line in MORE_LINES], codes={0})
    check_answers([(line, server.run(*line.split(), folder=hostile)) for line in REFUSED], codes={2})
    folders = [path.name for path in (hostile / "study" / "tasks").iterdir()]
    assert all(re.fullmatch(r"[a-z0-9-]{1,60}", name) for name in folders), folders
    assert pd.read_csv(hostile / "base.csv")["item"].nunique() == 3 * len(HOSTILE)
    for page in ("run/report.html", "agreed/report.html", "study/report.html", "sorts/report.html"):
        text = (hostile / page).read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "49" not in text.split("{{ 7 * 7 }}")[0][-3:]
        assert "'unsafe-inline'" not in text.split("script-src", 1)[1].split(";", 1)[0]


def test_a_page_allows_its_own_script_only(template: Path) -> None:
    text = (template / "run" / "report.html").read_text(encoding="utf-8")
    allowed = text.split("script-src ", 1)[1].split(";", 1)[0].split()
    scripts = re.findall("<script[^>]*>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    assert allowed == [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]


def test_json_on_standard_output_can_be_read(server: Server, hostile: Path) -> None:
    done = server.run("describe", "votes.csv", "--json", folder=hostile)
    assert done.code == 0
    assert json.loads(done.out)


def test_the_pages_open_in_a_browser_without_errors_or_requests(
    hostile: Path, answers: Answers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    browser, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver_path is None:
        pytest.skip("no Chromium with its driver is installed: the pages are not opened")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    check_answers(answers, codes={0})
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        for name in ("run/report.html", "agreed/report.html"):
            page = hostile / name
            driver.get(page.as_uri())
            assert [entry for entry in driver.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}] == []
            events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
            asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
            # The browser itself asks for its new tab.
            assert {a for a in asked if not a.startswith(("data:", "chrome://"))} <= {page.as_uri()}
            assert driver.execute_script("return document.querySelectorAll('table.sortable th button').length") > 0
    finally:
        driver.quit()
