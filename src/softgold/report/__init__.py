"""One HTML page on a run: values read from its files, charts as SVG, words for those who have not read the papers."""

from softgold.report.html import render_report, write_report
from softgold.report.summary import RunSummary, summarise

__all__ = ["RunSummary", "render_report", "summarise", "write_report"]
