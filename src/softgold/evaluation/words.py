"""Results of an evaluation in words, the same on the command line and in the report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softgold.evaluation.result import Evaluation, Lead, Notice, RankComparison, Swap

MOST_NAMES = 4


def place_names(ranks: Sequence[float]) -> list[str]:
    """Return ranks as people write them: models that share a place have the same number, with "=".

    >>> place_names([1, 2.5, 2.5, 4, math.nan])
    ['1', '2=', '2=', '4', '-']
    """
    names = []
    for rank in ranks:
        if math.isnan(rank):
            names.append("-")
            continue
        sharing = sum(other == rank for other in ranks)
        names.append(f"{rank - (sharing - 1) / 2:.0f}" + ("=" if sharing > 1 else ""))
    return names


def lead_words(lead: Lead, title: str) -> str:
    """Say who is first by a metric, or that the first cannot be told apart from others.

    >>> lead_words(Lead(("a",), (), "b", 0.991), "AUROC")
    'a is first by AUROC (ahead of every other model in at least 99.1 % of the resamples)'
    >>> lead_words(Lead(("a",), ("b",), "b", 0.8), "AUROC")
    'a and b cannot be told apart by AUROC (a is ahead of b in 80.0 % of the resamples)'
    >>> lead_words(Lead(("a", "b"), (), "c", 1.0), "AUROC")
    'a and b share the first place by AUROC'
    """
    if not lead.models:
        return f"no model has a value of {title}"
    first = lead.models[0]
    if not lead.closest:
        return f"{first} is the only model with a value of {title}"
    if lead.is_separated:
        return f"{first} is first by {title} (ahead of every other model in {at_least_words(lead.probability)})"
    share = f"{100 * lead.probability:.1f} % of the resamples"
    if len(lead.models) > 1:
        rivals = f" and cannot be told apart from {list_names(lead.rivals)}" if lead.rivals else ""
        return f"{list_names(lead.models)} share the first place by {title}{rivals}"
    together = list_names((*lead.models, *lead.rivals))
    return f"{together} cannot be told apart by {title} ({first} is ahead of {lead.closest} in {share})"


def both_leads(found: RankComparison, ordinary: str, soft: str) -> str:
    """Say who is first by an ordinary metric and by its soft twin, in one sentence.

    >>> lead = Lead(("a",), (), "b", 1.0)
    >>> both_leads(RankComparison("auroc", "soft_auroc", 0.5, lead, lead, (), (), ()), "AUROC", "soft AUROC")
    'a is first by AUROC and by soft AUROC (ahead of every other model in every resample)'
    """
    before, after = found.best_ordinary, found.best_soft
    if before.is_separated and after.is_separated and before.models == after.models:
        share = at_least_words(min(before.probability, after.probability))
        return f"{after.models[0]} is first by {ordinary} and by {soft} (ahead of every other model in {share})"
    return f"{lead_words(before, ordinary)}; {lead_words(after, soft)}"


def at_least_words(probability: float) -> str:
    """Say in how many resamples something holds, given the smallest share."""
    return "every resample" if probability == 1 else f"at least {100 * probability:.1f} % of the resamples"


def swap_words(found: RankComparison, ordinary: str, soft: str) -> str:
    """Say how many pairs of models change places, which of them the resamples separate, and how many are ties.

    >>> lead = Lead(("a",), (), "b", 0.99)
    >>> swap_words(RankComparison("auroc", "soft_auroc", 0.5, lead, lead, (), (), (("a", "b"),)), "AUROC", "soft AUROC")
    'no two models change places; 1 pair is tied by one of the metrics only'
    """
    words = "no two models change places"
    if found.swaps:
        sure = [_swap(swap, ordinary, soft) for swap in found.swaps if swap.is_separated]
        told = "; ".join(sure[:MOST_NAMES]) or "none of them with models that can be told apart"
        more = f"; and {len(sure) - MOST_NAMES} more such pairs" if len(sure) > MOST_NAMES else ""
        words = f"{_counted(len(found.swaps), 'pair changes', 'pairs change')} places by value, {told}{more}"
    if found.ties:
        words += f"; {_counted(len(found.ties), 'pair is', 'pairs are')} tied by one of the metrics only"
    return words


def _swap(swap: Swap, ordinary: str, soft: str) -> str:
    return (
        f"{swap.first} is ahead of {swap.second} by {ordinary} (in {100 * swap.p_ordinary:.1f} % of the resamples) "
        f"and behind by {soft} (in {100 * swap.p_soft:.1f} %)"
    )


def r_squared_words(found: RankComparison) -> str:
    """Return R² with three digits; empty where it is undefined, as with two models or one."""
    return "" if math.isnan(found.r_squared) else f"R² = {found.r_squared:.3f}"


def notice_words(notice: Notice, evaluation: Evaluation) -> str:
    """Return a notice with the tasks that it concerns, unless it concerns all of them."""
    if not notice.tasks or len(notice.tasks) == len(evaluation.tasks):
        return notice.text
    return f"{notice.text} (in {list_names(notice.tasks)})"


def list_names(names: Sequence[str]) -> str:
    """Join names; beyond four, the first three and a count.

    >>> list_names(["a", "b", "c"]), list_names(list("abcdef"))
    ('a, b and c', 'a, b, c and 3 others')
    """
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
