"""One HTML page on a run: typed results, charts as SVG, words for those who have not read the papers."""

from softgold.report.html import render_report, write_report

__all__ = ["render_report", "write_report"]
