"""Replay campaigns on real votes, and check forecasts: how many votes does each way of placing them need?

    python scripts/bench/next.py DIR [--seeds 5] [--groups 1] [--tables NAME ...] [--campaigns 50] [--markdown FILE]

DIR has one folder per data set with votes.csv and truth.csv. A table takes part if at least half of its items have
eight votes; the other items are left out. A replay starts with two votes per item; in every round a fifth of the items
get one more, taken from those that were really given. Policies: `uniform` (items with fewest votes), `uncertainty`
(largest min(p, 1 - p)) and `ours`, what `softgold next` plans: the items of largest E[(p' - p)^2], and the annotator
whom it would suggest if only those who really voted on an item were free. `ours, items only` takes anybody's vote. Two
more for comparison: `people only` chooses annotators, on the items of uniform, and `hindsight` buys on the items whose
p is farthest from what all votes of the table will make of it, which nobody can know. Shares are votes needed to match
the accuracy (or the log loss) of uniform allocation with 3, 5 and 8 votes per item, divided by its votes; curves are
means over the seeds, made monotone. With `--groups G` the shares are also given for G groups of seeds: how far they
depend on chance.

After the replays, forecasts made at three votes per item are shown beside what happened, and `--campaigns` counts how
often the realised share of wrong labels lies in the 90 % interval on simulated studies.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

import softgold
from softgold.models.base import Fit
from softgold.planning.assignment import EXPLORE, Voters, assign
from softgold.planning.beliefs import Beliefs
from softgold.planning.crew import Crew
from softgold.planning.forecasting import forecast
from softgold.planning.outcomes import look_ahead
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

START, FEWEST, LEVELS = 2, 8, (3, 5, 8)
CLIP = 1e-4
FIRST_SEED = 1000  # of the simulated campaigns; the seeds from 0 on served to develop the forecast


@dataclass(frozen=True, eq=False)
class Study:
    """Votes that may be bought, and the truth of some items (NaN where it is not known)."""

    name: str
    votes: VoteTable
    truth: FloatArray

    @cached_property
    def settled_p(self) -> FloatArray:
        """The soft labels that all votes give."""
        return softgold.fit(self.votes, engine="coordinate").posterior.soft_labels().p


def studies(folder: Path, names: list[str] | None) -> Iterator[Study]:
    """Give every table that allows a replay."""
    for path in sorted(folder.glob("*/votes.csv")):
        truth = path.parent / "truth.csv"
        if not truth.is_file() or (names and path.parent.name not in names):
            continue
        votes = softgold.read_votes(path, duplicates="all")
        enough = votes.item_counts >= FEWEST
        if enough.mean() < 0.5:
            continue
        if not enough.all():
            votes = softgold.read_votes(votes.to_frame()[enough[votes.item_codes]], duplicates="all")
        labels = pd.read_csv(truth, dtype={"item": "str"}).set_index("item")["label"]
        yield Study(path.parent.name, votes, labels.reindex(votes.item_ids).to_numpy(dtype=np.float64))


class Campaign:
    """Votes bought so far, out of those that were given."""

    def __init__(self, study: Study, seed: int) -> None:
        self.study, self.votes = study, study.votes
        self.rng = np.random.default_rng(seed)
        self.luck = self.rng.random(study.votes.n_votes)  # one order of the votes for all policies
        self.bought = np.zeros(study.votes.n_votes, dtype=bool)
        for _ in range(START):
            self.buy(np.arange(study.votes.n_items))

    @property
    def counts(self) -> IntArray:
        """Votes bought on each item."""
        return np.bincount(self.votes.item_codes[self.bought], minlength=self.votes.n_items)

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Items with votes left."""
        return self.counts < np.bincount(self.votes.item_codes, minlength=self.votes.n_items)

    def buy(self, items: IntArray) -> None:
        """Buy anybody's vote on each item."""
        left = self.on_sale(items)
        order = left[np.lexsort((self.luck[left], self.votes.item_codes[left]))]
        self.bought[order[np.unique(self.votes.item_codes[order], return_index=True)[1]]] = True

    def on_sale(self, items: IntArray) -> IntArray:
        """Return the votes that were given on some items and are not bought."""
        return np.flatnonzero(~self.bought & np.isin(self.votes.item_codes, items))

    def buy_from_suggested(self, items: IntArray, fit: Fit) -> None:
        """Buy a vote on each item, the most valuable first, of the annotator that `softgold next` suggests.

        Where it suggests nobody, buy anybody's.
        """
        beliefs, left = Beliefs.of(fit), self.on_sale(items)
        crew, row = Crew.of(beliefs), np.argsort(items)[np.searchsorted(np.sort(items), self.votes.item_codes[left])]
        place = crew.annotator_ids.get_indexer(self.votes.annotator_ids)[self.votes.annotator_codes[left]]
        vote = np.full((len(items), len(crew.annotator_ids)), -1)
        vote[row[place >= 0], place[place >= 0]] = left[place >= 0]
        absent = vote < 0
        voters = Voters(np.nonzero(absent)[1], np.concatenate([[0], np.cumsum(absent.sum(axis=1))]))
        found = assign(beliefs, items, np.ones_like(items), crew, EXPLORE, voters)
        self.bought[vote[found.rows, crew.annotator_ids.get_indexer(found.annotators)]] = True
        self.buy(np.delete(items, found.rows))

    def fit(self) -> Fit:
        """Fit the votes bought so far."""
        codes, rows = self.votes.annotator_codes[self.bought], self.bought
        who, annotators = np.unique(codes, return_inverse=True)
        table = VoteTable.from_codes(
            self.votes.item_codes[rows],
            annotators,
            self.votes.votes[rows],
            self.votes.item_ids,
            self.votes.annotator_ids[who],
        )
        return softgold.fit(table, engine="coordinate")


Policy = Callable[[Campaign, Fit], FloatArray]


def uniform(campaign: Campaign, fit: Fit) -> FloatArray:
    """Items with fewest votes first, in random order."""
    return -campaign.counts + 0.5 * campaign.rng.random(campaign.votes.n_items)


def uncertainty(campaign: Campaign, fit: Fit) -> FloatArray:
    """The most uncertain labels first."""
    return fit.posterior.soft_labels().uncertainty


def hindsight(campaign: Campaign, fit: Fit) -> FloatArray:
    """The labels that all votes would move farthest first."""
    return np.abs(fit.posterior.soft_labels().p - campaign.study.settled_p)


def most_valuable(campaign: Campaign, fit: Fit) -> FloatArray:
    """The largest expected fall of the Brier score first."""
    beliefs = Beliefs.of(fit)
    outlook = look_ahead(beliefs, Crew.of(beliefs).pool(beliefs), 1)
    return outlook.brier[:, 0] - outlook.brier[:, 1]


POLICIES: dict[str, tuple[Policy, bool]] = {
    "uniform": (uniform, False),
    "uncertainty": (uncertainty, False),
    "ours": (most_valuable, True),
    "ours, items only": (most_valuable, False),
    "people only": (uniform, True),
    "hindsight": (hindsight, False),
}


def advance(campaign: Campaign, fit: Fit, policy: str) -> bool:
    """Buy one round of votes; return whether there was any to buy."""
    score, with_people = POLICIES[policy]
    open_items = np.flatnonzero(campaign.is_open)
    value = score(campaign, fit)[open_items]
    size = max(1, round(campaign.votes.n_items / 5))
    chosen = open_items[np.argsort(-value, kind="stable")[:size]]
    if with_people and len(chosen):
        campaign.buy_from_suggested(chosen, fit)
    else:
        campaign.buy(chosen)
    return len(chosen) > 0


def judge(fit: Fit, truth: FloatArray) -> tuple[float, float]:
    """Return accuracy and log loss on the items with a known truth; p = 0.5 counts as half right."""
    known = ~np.isnan(truth)
    p, label = fit.posterior.soft_labels().p[known], truth[known]
    clipped = np.clip(p, CLIP, 1 - CLIP)
    right = np.where(p == 0.5, 0.5, (p > 0.5) == label)
    return float(right.mean()), -float(np.mean(np.log(np.where(label == 1, clipped, 1 - clipped))))


def replay(study: Study, policy: str, seed: int) -> FloatArray:
    """Return one row per round: votes per item, accuracy, log loss."""
    campaign, rows = Campaign(study, seed), []
    while True:
        fit = campaign.fit()
        rows.append((campaign.counts.mean(), *judge(fit, study.truth)))
        if rows[-1][0] >= max(LEVELS) or not advance(campaign, fit, policy):
            return np.array(rows)


def mean_curve(runs: list[FloatArray]) -> FloatArray:
    """Return the mean over seeds, accuracy made rising and log loss falling."""
    length = min(map(len, runs))
    mean = np.mean([run[:length] for run in runs], axis=0)
    for column, rising in ((1, True), (2, False)):
        mean[:, column] = IsotonicRegression(increasing=rising).fit_transform(mean[:, 0], mean[:, column])
    return mean


def share_needed(curve: FloatArray, base: FloatArray, column: int, level: int) -> float:
    """Return the votes that a curve needs for what `base` has at a level, over the level; infinite if never."""
    target, sign = np.interp(level, base[:, 0], base[:, column]), 1 if column == 1 else -1
    reached = sign * (curve[:, column] - target) >= -1e-12
    if not reached.any():
        return np.inf
    place = int(np.argmax(reached))
    if place == 0:
        return float(curve[0, 0] / level)
    (x0, y0), (x1, y1) = curve[place - 1, [0, column]], curve[place, [0, column]]
    return float((x0 + (target - y0) / (y1 - y0) * (x1 - x0)) / level)


def replays(found: list[Study], seeds: int, groups: int) -> list[str]:
    """Replay every table under every policy; return the lines of the report."""
    lines = [
        "| table | policy | accuracy at 3 / 5 / 8 | log loss at 5 | votes for its accuracy at 3 / 5 / 8 | log loss |",
        "|---|---|---|---|---|---|",
    ]
    runs: dict[tuple[str, str], list[FloatArray]] = {}
    for study in found:
        for policy in POLICIES:
            started = time.perf_counter()
            runs[study.name, policy] = [replay(study, policy, seed) for seed in range(seeds)]
            curve = mean_curve(runs[study.name, policy])
            needed = shares_needed(runs[study.name, policy], runs[study.name, "uniform"])
            at = " / ".join(f"{np.interp(level, curve[:, 0], curve[:, 1]):.3f}" for level in LEVELS)
            loss = np.interp(5, curve[:, 0], curve[:, 2])
            lines.append(
                f"| {study.name} | {policy} | {at} | {loss:.3f} | {_shown(needed[:3])} | {_shown(needed[3:])} |"
            )
            print(lines[-1], f"{time.perf_counter() - started:.0f} s", flush=True)
    for group in [slice(None), *(slice(number, None, groups) for number in range(groups if groups > 1 else 0))]:
        label = "mean" if group == slice(None) else f"seeds {group.start}, {group.start + groups}, ..."
        for policy in POLICIES:
            rows = [
                shares_needed(runs[study.name, policy][group], runs[study.name, "uniform"][group]) for study in found
            ]
            mean = np.mean(rows, axis=0).tolist()
            lines.append(f"| **{label}** | {policy} | | | {_shown(mean[:3])} | {_shown(mean[3:])} |")
            print(lines[-1], flush=True)
    return lines


def shares_needed(runs: list[FloatArray], base: list[FloatArray]) -> list[float]:
    """Return the shares for accuracy at each level, then those for log loss."""
    curve, uniform_curve = mean_curve(runs), mean_curve(base)
    return [share_needed(curve, uniform_curve, column, level) for column in (1, 2) for level in LEVELS]


def _shown(shares: list[float]) -> str:
    return " / ".join("never" if np.isinf(share) else f"{share:.2f}" for share in shares)


def forecasts(found: list[Study], seeds: int) -> list[str]:
    """Show what was expected at three votes per item beside what happened at five and eight."""
    lines = ["| table | policy | votes per item | expected wrong (90 % interval) | realised |", "|---|---|---|---|---|"]
    for study in found:
        for policy in ("uniform", "ours", "ours, items only"):
            rows = [_foreseen(study, policy, seed) for seed in range(seeds)]
            for level, parts in zip((5, 8), zip(*rows, strict=True), strict=True):
                (error, low, high, wrong) = np.mean(parts, axis=0)
                lines.append(
                    f"| {study.name} | {policy} | {level} | {error:.3f} ({low:.3f} - {high:.3f}) | {wrong:.3f} |"
                )
                print(lines[-1], flush=True)
    return lines


def _foreseen(study: Study, policy: str, seed: int, levels: tuple[int, ...] = (5, 8)) -> list[tuple[float, ...]]:
    """Return expected error, interval and realised error at some votes per item, forecast at three."""
    campaign = Campaign(study, seed)
    campaign.buy(np.arange(study.votes.n_items))
    fit = campaign.fit()
    seen = forecast(fit, seed=seed)
    curve = seen.uniform if policy == "uniform" else seen.adaptive
    rows = []
    for level in levels:
        while campaign.counts.mean() < level and advance(campaign, fit, policy):
            fit = campaign.fit()
        bought = (campaign.counts.mean() - START - 1) * study.votes.n_items
        rows.append((*curve.error_at(bought), 1 - judge(fit, study.truth)[0]))
    return rows


def coverage(count: int) -> list[str]:
    """Count how often the realised error of a simulated campaign lies in the interval."""
    inside: dict[str, list[bool]] = {"uniform": [], "ours": [], "ours, items only": []}
    gaps: dict[str, list[float]] = {"uniform": [], "ours": [], "ours, items only": []}
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        rng = np.random.default_rng(seed)
        made = softgold.simulate(
            n_items=int(rng.choice([300, 600, 1000])),
            n_annotators=int(rng.choice([30, 60, 120])),
            votes_per_item=12,
            prevalence=float(rng.choice([0.2, 0.35, 0.5])),
            ability_mean=float(rng.choice([0.7, 1.0, 1.5])),
            random_share=float(rng.choice([0.0, 0.2])),
            seed=seed,
        )
        study = Study(f"simulated {seed}", made.votes, made.truth.label.astype(np.float64))
        for policy, hits in inside.items():
            expected, low, high, wrong = _foreseen(study, policy, seed, (5,))[0]
            hits.append(bool(low <= wrong <= high))
            gaps[policy].append(wrong - expected)
    lines = [
        f"{policy}: realised error in the 90 % interval in {sum(hits)} of {count} campaigns; "
        f"mean of realised - expected {np.mean(gaps[policy]):+.4f}"
        for policy, hits in inside.items()
    ]
    print("\n".join(lines), flush=True)
    return lines


def main() -> None:
    """Parse the options, run everything, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--campaigns", type=int, default=0)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    found = list(studies(options.folder, options.tables))
    lines = [*replays(found, options.seeds, options.groups), "", *forecasts(found, options.seeds)] if found else []
    if options.campaigns:
        lines += ["", *coverage(options.campaigns)]
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
