"""Photograph the demo's report for the README, with Chromium and its driver.

python scripts/make_report_picture.py [--output docs/figures/report.png]
"""

from __future__ import annotations

import argparse
import base64
import io
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from softgold.cli import main as softgold

WIDTH = 1240
# Each part: the element where it begins, and its height in pixels; None is the height of the element.
PARTS: tuple[tuple[str, int | None], ...] = (("header", None), ("#soft-labels", 575), ("#models", 815))


def open_browser(profile: str) -> webdriver.Chrome:
    """Start a browser without a window, in its own profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")
    for flag in (*flags, f"--user-data-dir={profile}", f"--window-size={WIDTH},1000"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))


def photograph(browser: webdriver.Chrome, start: str, height: int | None) -> np.ndarray:
    """Return the page from the top of an element on, as an array of pixels."""
    top, own_height = browser.execute_script(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [box.top + window.scrollY, box.height]",
        start,
    )
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height or round(own_height), "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB"))


def main() -> None:
    """Run the demo, open its report, and keep the parts that show most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "docs" / "figures" / "report.png")
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as folder:
        softgold(["demo", "-o", f"{folder}/demo_run", "--quiet"])
        browser = open_browser(f"{folder}/profile")
        try:
            browser.get(Path(folder, "demo_run", "report.html").as_uri())
            parts = [photograph(browser, start, height) for start, height in PARTS]
        finally:
            browser.quit()
    line = np.full((6, WIDTH, 3), 190, dtype=np.uint8)
    picture = Image.fromarray(np.concatenate([row for part in parts for row in (part, line)][:-1]))
    picture.quantize(256).save(output, optimize=True)


if __name__ == "__main__":
    main()
