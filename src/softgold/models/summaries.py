"""A fit in a few lines, for the command line, the interpreter and notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class FitSummary:
    """The main facts of a fit.

    Attributes:
        model: Name of the model.
        engine: Name of its engine; empty for models without one.
        items: Number of items.
        annotators: Number of annotators.
        votes: Number of votes.
        positives: Items with p of at least 0.5.
        expected_wrong: Share of wrong labels to expect if soft labels are cut at 0.5.
        adversaries: Annotators who are adversarial with a probability above 0.95.
        converged: Whether the fit settled.
        reason: Why it stopped.
        seconds: Time that it took.
        warnings: Problems found, one sentence each.
    """

    model: str
    engine: str
    items: int
    annotators: int
    votes: int
    positives: int
    expected_wrong: float
    adversaries: int
    converged: bool
    reason: str
    seconds: float
    warnings: tuple[str, ...]

    def rows(self) -> list[tuple[str, str]]:
        """Return names and texts."""
        time = "" if self.seconds != self.seconds else f", {self.seconds:.1f} s"
        return [
            ("model", f"{self.model} ({self.engine})" if self.engine else self.model),
            ("data", f"{self.votes:,} votes on {self.items:,} items by {self.annotators:,} annotators"),
            ("fit", f"{'settled' if self.converged else 'NOT settled'}: {self.reason}{time}"),
            ("positive at p >= 0.5", f"{self.positives:,} items"),
            ("expected wrong labels", f"{self.expected_wrong:.1%} if cut at 0.5"),
            ("adversarial annotators", f"{self.adversaries:,}"),
            *(("warning", text) for text in self.warnings),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:<{width}}  {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        cells = (f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in self.rows())
        return f"<table>{''.join(cells)}</table>"
