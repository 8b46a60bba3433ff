"""Time and judge the engines side by side in one process, on a simulated CleanPatrick issue type.

    python scripts/bench/fit.py                     # 165,000 votes, and ten times that
    python scripts/bench/fit.py --scales 1 --json fit.json

Rows: (a) the published recipe in plain Pyro (zeros, not whitened, Adam 0.1), timed over 100 steps and scaled to 10,000;
(b) the svi engine, (c) the coordinate engine, both with the default prior; (d) crowd-kit where it is installed; and
the baselines. Bounds are compared under the paper's prior for every method, by one estimator: draws of abilities and
difficulties for the expected log likelihood, closed forms for the rest. Log losses clip p to [1e-6, 1 - 1e-6].
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from numpy.typing import NDArray
from pyro.infer import SVI, Trace_ELBO
from sklearn.metrics import roc_auc_score
from torch.distributions import constraints

import softgold
from softgold.glad import coordinate
from softgold.glad.chunks import vote_chunks
from softgold.glad.coordinate import Grids
from softgold.glad.posterior import Posterior
from softgold.glad.priors import PRESETS
from softgold.glad.svi_state import NormalFit
from softgold.votes import VoteTable

FloatArray = NDArray[np.float64]
PAPER_STEPS, TIMED_STEPS, DRAWS = 10_000, 100, 40
PAPER_SCALE = 1000.0


@dataclass
class Row:
    """One method's figures; None where they were not asked for."""

    method: str
    seconds: float | None = None
    elbo: float | None = None
    bytes_per_vote: float | None = None
    auroc: float | None = None
    accuracy: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    note: str = ""

    def judge(self, p: FloatArray, truth: NDArray[np.int8]) -> Row:
        """Fill in how p does against the truth."""
        clipped = np.clip(p, 1e-6, 1 - 1e-6)
        self.auroc = float(roc_auc_score(truth, p))
        self.accuracy = float(((p >= 0.5) == truth).mean())
        self.log_loss = float(-np.mean(np.where(truth, np.log(clipped), np.log1p(-clipped))))
        self.brier = float(np.mean((p - truth) ** 2))
        return self


def timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return the result and the best of some times: the one least disturbed by whatever else the machine did."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return result, min(times)


class PaperRecipe:
    """The published recipe as a plain Pyro program."""

    def __init__(self, votes: VoteTable) -> None:
        self.annotator = torch.tensor(votes.annotator_codes.astype(np.int64))
        self.item = torch.tensor(votes.item_codes.astype(np.int64))
        self.vote = torch.tensor(votes.votes.astype(np.float32))
        self.sizes = votes.n_annotators, votes.n_items

    def model(self) -> None:
        """Abilities N(0, 1), difficulties N(0, 1000^2)."""
        people, things = self.sizes
        with pyro.plate("annotators", people):
            c = pyro.sample("c", dist.Normal(torch.tensor(0.0), torch.tensor(1.0)))
        with pyro.plate("items", things):
            b = pyro.sample("b", dist.Normal(torch.tensor(0.0), torch.tensor(PAPER_SCALE)))
        with pyro.plate("votes", len(self.vote)):
            pyro.sample("y", dist.Bernoulli(logits=c[self.annotator] * b[self.item]), obs=self.vote)

    def guide(self) -> None:
        """Independent Normals from zero mean and unit width."""
        for name, plate, size in (("c", "annotators", self.sizes[0]), ("b", "items", self.sizes[1])):
            mean = pyro.param(f"{name}_mean", torch.zeros(size))
            sd = pyro.param(f"{name}_sd", torch.ones(size), constraint=constraints.positive)
            with pyro.plate(plate, size):
                pyro.sample(name, dist.Normal(mean, sd))

    def run(self, steps: int) -> tuple[NormalFit, float]:
        """Return the fit in whitened coordinates after `steps`, and the seconds of 10,000 at the pace of 100."""
        best = np.inf
        for threads in sorted({1, torch.get_num_threads()}):  # the recipe gets whichever is faster here
            best = min(best, self._pace(threads))
        torch.set_num_threads(1)
        pyro.clear_param_store()
        pyro.set_rng_seed(0)
        svi = self._svi()
        for _ in range(steps):
            svi.step()
        found = {name: value.detach().numpy().astype(np.float64) for name, value in pyro.get_param_store().items()}
        fitted = NormalFit(
            found["c_mean"] * PAPER_SCALE,
            found["c_sd"] * PAPER_SCALE,
            found["b_mean"] / PAPER_SCALE,
            found["b_sd"] / PAPER_SCALE,
            PAPER_SCALE,
        )
        return fitted, best * PAPER_STEPS

    def _svi(self) -> SVI:
        return SVI(self.model, self.guide, pyro.optim.Adam({"lr": 0.1}), Trace_ELBO())

    def _pace(self, threads: int) -> float:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        pyro.clear_param_store()
        svi = self._svi()
        for _ in range(10):
            svi.step()
        begin = time.perf_counter()
        for _ in range(TIMED_STEPS):
            svi.step()
        pace = (time.perf_counter() - begin) / TIMED_STEPS
        torch.set_num_threads(before)
        return pace


@dataclass
class Approximation:
    """A mean-field posterior in whitened coordinates: how to draw from it, and minus its distance from the prior."""

    draw: Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]
    minus_kl: float

    def elbo(self, votes: VoteTable, seed: int = 0) -> float:
        """Return the bound: expected log likelihood by draws, and the rest."""
        rng = np.random.default_rng(seed)
        sign = 1.0 - 2.0 * votes.votes
        total = 0.0
        for _ in range(DRAWS):
            c, b = self.draw(rng)
            total -= np.logaddexp(0.0, sign * c[votes.annotator_codes] * b[votes.item_codes]).sum()
        return float(total / DRAWS + self.minus_kl)


def of_normals(fitted: NormalFit) -> Approximation:
    """Return the approximation by Normals in whitened coordinates."""

    def distance(mean: FloatArray, sd: FloatArray, width: float) -> float:
        return float((np.log(width / sd) + (sd**2 + mean**2) / (2 * width**2) - 0.5).sum())

    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        return rng.normal(fitted.c_mean, fitted.c_sd), rng.normal(fitted.b_mean, fitted.b_sd)

    kl = distance(fitted.c_mean, fitted.c_sd, fitted.scale) + distance(fitted.b_mean, fitted.b_sd, 1.0)
    return Approximation(draw, -kl)


def of_coordinate(votes: VoteTable) -> Approximation:
    """Fit the coordinate engine under the paper's prior and return its exact factors as an approximation."""
    prior = PRESETS["paper"]
    grids = Grids.for_votes(votes, prior)
    parts = vote_chunks(votes)
    state, _ = coordinate.run(coordinate.start_state(votes, prior, grids), parts, prior, grids)
    abilities, grid = state.abilities, grids.items
    coupled = abilities.table @ grids.coupling
    chunks = [coordinate.item_factors(part, abilities.mean, coupled, grids, "free") for part in parts]
    bound = coordinate.ability_bound(abilities, prior.whitened_abilities(state.scale), prior, state.scale)
    for chunk in chunks:  # a row's bound holds its likelihood; what is left is prior and entropy
        likelihood = chunk.eta * chunk.factor.mean - np.einsum("rg,rg->r", chunk.factor.table, chunk.penalty)
        bound += float((chunk.factor.bound - likelihood).sum())
    signed = np.concatenate([-grid.nodes[:0:-1], grid.nodes])

    def draw_items(rng: np.random.Generator) -> Iterator[FloatArray]:
        for chunk in chunks:
            up = chunk.factor.table / (1 + np.exp(np.clip(-2 * chunk.eta[:, None] * grid.nodes, -80, 80)))
            down = chunk.factor.table - up
            mass = np.concatenate([down[:, :0:-1], chunk.factor.table[:, :1], up[:, 1:]], axis=1)
            yield draw_rows(np.broadcast_to(signed, mass.shape), mass, rng)

    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        points = abilities.points
        return draw_rows(points.nodes, points.mass, rng), np.concatenate(list(draw_items(rng)))

    return Approximation(draw, bound)


def draw_rows(nodes: FloatArray, mass: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw one point a row by the inverse of the piecewise linear distribution function."""
    below = np.cumsum(mass, axis=1) - mass / 2
    level = rng.random(len(mass))[:, None]
    right = np.clip((below < level).sum(axis=1), 1, mass.shape[1] - 1)
    rows = np.arange(len(mass))
    span = np.maximum(below[rows, right] - below[rows, right - 1], 1e-300)
    share = np.clip((level[:, 0] - below[rows, right - 1]) / span, 0, 1)
    return nodes[rows, right - 1] + share * (nodes[rows, right] - nodes[rows, right - 1])


def whitened(posterior: Posterior) -> NormalFit:
    """Return a posterior of Normals in whitened coordinates."""
    c, b, scale = posterior.abilities, posterior.items, posterior.prior.starting_scale
    return NormalFit(c.mean * scale, c.sd * scale, b.mean / scale, b.sd / scale, scale)


def of_engine(engine: str, votes: VoteTable) -> Approximation:
    """Fit an engine under the paper's prior and return its approximation."""
    if engine == "coordinate":
        return of_coordinate(votes)
    return of_normals(whitened(softgold.fit(votes, prior="paper").posterior))


def compare_on_normals(votes: VoteTable) -> None:
    """Print how far svi and the coordinate engine are apart where both fit Normals."""
    svi, exact = (
        softgold.fit(votes, **options).posterior
        for options in ({"engine": "svi"}, {"engine": "coordinate", "family": "gaussian"})
    )
    bounds = [of_normals(whitened(found)).elbo(votes) for found in (svi, exact)]
    apart = np.quantile(np.abs(svi.items.positive - exact.items.positive), 0.99)
    print(
        f"svi against coordinate(family='gaussian'), default prior: ELBO {bounds[0]:,.1f} and {bounds[1]:,.1f}, "
        f"{abs(bounds[0] / bounds[1] - 1):.3%} apart; p {apart:.4f} apart at the 99th percentile"
    )


def peak_bytes_per_vote(votes: VoteTable) -> float:
    """Return the most memory that a coordinate fit holds above its table, per vote."""
    tracemalloc.start()
    softgold.fit(votes, engine="coordinate")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / votes.n_votes


def crowdkit_rows(votes: VoteTable, truth: NDArray[np.int8], *, glad_iterations: int) -> Iterator[Row]:
    """Run crowd-kit's aggregators, if it is installed."""
    try:
        from crowdkit.aggregation import GLAD, DawidSkene
    except ImportError:
        return
    frame = votes.to_frame().rename(columns={"item": "task", "annotator": "worker", "vote": "label"})
    runs = [("crowd-kit DawidSkene (n_iter=100)", DawidSkene(n_iter=100))]
    if glad_iterations:
        runs.append((f"crowd-kit GLAD (n_iter={glad_iterations})", GLAD(n_iter=glad_iterations)))
    for name, method in runs:
        probabilities, seconds = timed(lambda method=method: method.fit_predict_proba(frame), 1)
        p = probabilities.reindex(votes.item_ids)[1].to_numpy(dtype=np.float64)
        yield Row(name, seconds).judge(p, truth)


def bench(scale: float, issue: str, *, paper_steps: int, glad_iterations: int, repeats: int) -> list[Row]:
    """Return the rows of one size of table."""
    study = softgold.simulate("cleanpatrick", issue=issue, scale=scale, seed=0)
    votes, truth = study.votes, study.truth.label
    print(f"\n{issue} x {scale:g}: {votes.n_votes:,} votes, {votes.n_items:,} items, {votes.n_annotators} annotators")
    rows = [Row("majority").judge(softgold.Majority().aggregate(votes).p, truth)]
    rows.append(Row("mean").judge(softgold.Mean().aggregate(votes).p, truth))
    small = scale == 1
    recipe, seconds = PaperRecipe(votes).run(paper_steps if small else 1)
    paper = Row("paper's recipe (10,000 steps)", seconds)
    if small:
        lean = np.sign(recipe.c_mean @ votes.annotator_counts) or 1.0
        paper.elbo = of_normals(recipe).elbo(votes)
        paper.note = f"scored after {paper_steps} steps, sign corrected by hand"
        paper.judge(
            torch.distributions.Normal(0, 1).cdf(torch.tensor(lean * recipe.b_mean / recipe.b_sd)).numpy(), truth
        )
    rows.append(paper)
    for engine in ("svi", "coordinate"):
        fitted, seconds = timed(lambda engine=engine: softgold.fit(votes, engine=engine), repeats)
        row = Row(engine, seconds).judge(fitted.posterior.soft_labels().p, truth)
        row.note = f"{fitted.diagnostics.steps} steps"
        if small:
            row.elbo = of_engine(engine, votes).elbo(votes)
        rows.append(row)
    rows[-1].bytes_per_vote = peak_bytes_per_vote(votes)
    if small:
        compare_on_normals(votes)
    rows.extend(crowdkit_rows(votes, truth, glad_iterations=glad_iterations if small else 0))
    return rows


def show(rows: list[Row]) -> None:
    """Print the rows as a table, times as ratios to the paper's recipe too."""
    paper = next(row.seconds for row in rows if row.method.startswith("paper"))
    print(
        f"{'method':<34}{'seconds':>9}{'paper/it':>10}{'ELBO':>12}{'B/vote':>8}"
        f"{'AUROC':>8}{'acc.':>8}{'log loss':>10}{'Brier':>8}"
    )

    def cell(value: float | None, form: str, width: int) -> str:
        return f"{'':>{width}}" if value is None else f"{value:>{width}{form}}"

    for row in rows:
        ratio = paper / row.seconds if row.seconds and paper else None
        print(
            f"{row.method:<34}{cell(row.seconds, '.2f', 9)}{cell(ratio, '.1f', 10)}{cell(row.elbo, ',.0f', 12)}"
            f"{cell(row.bytes_per_vote, '.0f', 8)}{cell(row.auroc, '.4f', 8)}{cell(row.accuracy, '.4f', 8)}"
            f"{cell(row.log_loss, '.4f', 10)}{cell(row.brier, '.4f', 8)}  {row.note}"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--issue", default="near_duplicates")
    parser.add_argument("--paper-steps", type=int, default=PAPER_STEPS, help="steps before the recipe is scored")
    parser.add_argument("--glad-iterations", type=int, default=10, help="of crowd-kit's GLAD; 0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    results = {}
    for scale in options.scales:
        rows = bench(
            scale,
            options.issue,
            paper_steps=options.paper_steps,
            glad_iterations=options.glad_iterations,
            repeats=options.repeats,
        )
        show(rows)
        results[f"{options.issue} x {scale:g}"] = [asdict(row) for row in rows]
    seconds = {
        name: next(row["seconds"] for row in rows if row["method"] == "coordinate") for name, rows in results.items()
    }
    names = list(seconds)
    if len(names) == 2:
        print(f"\ncoordinate, {names[1]} against {names[0]}: {seconds[names[1]] / seconds[names[0]]:.2f}x the time")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
