"""Time and judge models and engines side by side in one process.

    python scripts/bench/fit.py                      # all parts
    python scripts/bench/fit.py --part cleanpatrick --repeats 1

Parts: `cleanpatrick` (one simulated issue type, about 165,000 votes, and ten times that), `wide` (925,000 votes on
185,000 items by 85 annotators), `extremes` (a million annotators with one vote each; an item with 100,000 votes;
10,000 components). The published recipe is timed over 200 steps and scaled to its 10,000. Times are the best of some
repeats for ours and one run for the others; each ratio is of times from the same run. Log losses clip p to 1e-4.
"""

from __future__ import annotations

import argparse
import resource
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from numpy.typing import NDArray

import softgold
from softgold.metrics import log_loss, soft_auroc
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]
PUBLISHED_STEPS, TIMED_STEPS = 10_000, 200
MODELS: dict[str, dict[str, Any]] = {
    "two-class, coordinate": {"engine": "coordinate"},
    "two-class, svi": {"engine": "svi"},
    "glad, coordinate": {"model": "glad", "engine": "coordinate"},
    "glad, svi": {"model": "glad", "engine": "svi"},
}


def best_time(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return the result and the best of some times: the one least disturbed by whatever else the machine did."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return result, min(times)


def recipe_seconds(votes: VoteTable) -> float:
    """Return the seconds of 10,000 steps of the published recipe as a plain Pyro program, at the pace of 200.

    One thread: on two cores PyTorch's second thread made it slower by up to twenty times.
    """
    annotators, items = (torch.tensor(codes.astype(np.int64)) for codes in (votes.annotator_codes, votes.item_codes))
    observed = torch.tensor(votes.votes.astype(np.float32))
    sizes = {"c": votes.n_annotators, "b": votes.n_items}
    scales = {"c": 1.0, "b": 1000.0}

    def model() -> None:
        drawn = {}
        for name, size in sizes.items():
            with pyro.plate(f"plate_{name}", size):
                drawn[name] = pyro.sample(name, dist.Normal(torch.tensor(0.0), torch.tensor(scales[name])))
        with pyro.plate("votes", len(observed)):
            pyro.sample("y", dist.Bernoulli(logits=drawn["c"][annotators] * drawn["b"][items]), obs=observed)

    def guide() -> None:
        for name, size in sizes.items():
            mean = pyro.param(f"{name}_mean", torch.zeros(size))
            sd = pyro.param(f"{name}_sd", torch.ones(size), constraint=dist.constraints.positive)
            with pyro.plate(f"plate_{name}", size):
                pyro.sample(name, dist.Normal(mean, sd))

    torch.set_num_threads(1)
    pyro.clear_param_store()
    svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), pyro.infer.Trace_ELBO())
    for _ in range(TIMED_STEPS // 10):
        svi.step()
    begin = time.perf_counter()
    for _ in range(TIMED_STEPS):
        svi.step()
    return (time.perf_counter() - begin) / TIMED_STEPS * PUBLISHED_STEPS


def dawid_skene(votes: VoteTable) -> tuple[FloatArray, float] | None:
    """Return crowd-kit's probabilities and seconds, where it is installed."""
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return None
    frame = votes.to_frame().set_axis(["task", "worker", "label"], axis=1)
    found, seconds = best_time(lambda: DawidSkene(n_iter=100).fit_predict_proba(frame), 1)
    return found.reindex(votes.item_ids)[1].to_numpy(dtype=np.float64), seconds


def judged(p: FloatArray, truth: NDArray[np.int8]) -> str:
    """Return AUROC and log loss in words."""
    return f"AUROC {soft_auroc(truth, p):.4f}, log loss {log_loss(truth, np.clip(p, 1e-4, 1 - 1e-4)):.4f}"


def peak_bytes_per_vote(votes: VoteTable) -> float:
    """Return the most memory that a coordinate fit holds above its table, per vote."""
    tracemalloc.start()
    softgold.fit(votes, engine="coordinate")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / votes.n_votes


def cleanpatrick(repeats: int) -> None:
    """Compare with the published recipe and with crowd-kit, and show how time and memory grow."""
    sizes: dict[float, float] = {}
    for scale in (1, 10):
        study = softgold.simulate("cleanpatrick", issue="near_duplicates", scale=scale, seed=0)
        votes, truth = study.votes, study.truth.label
        size = f"{votes.n_votes:,} votes, {votes.n_items:,} items, {votes.n_annotators} annotators"
        print(f"\ncleanpatrick x {scale}: {size}")
        recipe = recipe_seconds(votes)
        print(f"  published recipe, 10,000 steps: {recipe:.1f} s")
        for name, options in MODELS.items():
            fitted, seconds = best_time(partial(softgold.fit, votes, **options), repeats)
            told = judged(fitted.posterior.soft_labels().p, truth)
            print(f"  {name}: {seconds:.2f} s, {recipe / seconds:.1f}x faster than the recipe; {told}", flush=True)
            if name == "two-class, coordinate":
                sizes[scale] = seconds
        other = dawid_skene(votes)
        if other is not None:
            ratio = sizes[scale] / other[1]
            print(
                f"  crowd-kit DawidSkene(n_iter=100): {other[1]:.2f} s; two-class coordinate takes {ratio:.2f}x of it"
            )
            print(f"    {judged(other[0], truth)}")
        print(f"  two-class coordinate: {peak_bytes_per_vote(votes):.0f} bytes per vote above the table")
    print(f"  10x the votes: {sizes[10] / sizes[1]:.2f}x the time")


def drawn(items: Any, annotators: Any, right: float, rng: np.random.Generator) -> VoteTable:
    """Return a table in which votes are right with a fixed chance."""
    items, annotators = np.asarray(items), np.asarray(annotators)
    _, item_codes = np.unique(items, return_inverse=True)
    _, codes = np.unique(annotators, return_inverse=True)
    truth = rng.random(item_codes.max() + 1) < 0.3
    votes = truth[item_codes] ^ (rng.random(len(items)) > right)
    names = [str(number) for number in range(item_codes.max() + 1)], [str(number) for number in range(codes.max() + 1)]
    return VoteTable.from_codes(item_codes, codes, votes, *names)


def wide(repeats: int) -> None:
    """Compare the engines where items are many and annotators few."""
    rng = np.random.default_rng(0)
    n_items, n_annotators, each = 185_000, 85, 5
    annotators = rng.random((n_items, n_annotators)).argpartition(each, axis=1)[:, :each]
    votes = drawn(np.repeat(np.arange(n_items), each), annotators.ravel(), 0.8, rng)
    seconds = {}
    for engine in ("coordinate", "svi"):
        _, seconds[engine] = best_time(lambda engine=engine: softgold.fit(votes, engine=engine), repeats)
    ratio = seconds["svi"] / seconds["coordinate"]
    print(f"\n{votes.n_votes:,} votes on {n_items:,} items by {n_annotators} annotators:")
    print(f"  coordinate {seconds['coordinate']:.2f} s, svi {seconds['svi']:.2f} s: {ratio:.2f}x")


def extremes() -> None:
    """Time tables that are large in one direction."""
    rng = np.random.default_rng(0)
    million = rng.integers(0, 200_000, 1_000_000)
    crowded = np.concatenate([np.zeros(100_000, int), rng.integers(1, 2_001, 100_000)])
    people = np.concatenate([np.arange(100_000), rng.integers(0, 100_000, 100_000)])
    once = np.unique(crowded * 200_000 + people, return_index=True)[1]
    pairs = np.repeat(np.arange(30_000), 2)
    tables = {
        "1,000,000 annotators with one vote each": drawn(million, np.arange(1_000_000), 0.8, rng),
        "one item with 100,000 votes": drawn(np.zeros(100_000, int), np.arange(100_000), 0.75, rng),
        "one item with 100,000 votes among 2,001": drawn(crowded[once], people[once], 0.75, rng),
        "10,000 components": drawn(pairs, pairs // 3 * 2 + np.tile([0, 1], 30_000), 0.85, rng),
    }
    print()
    for name, votes in tables.items():
        _, seconds = best_time(lambda votes=votes: softgold.fit(votes, engine="coordinate"), 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name}: {seconds:.2f} s; peak of the process so far {peak:.2f} GB", flush=True)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["cleanpatrick", "wide", "extremes"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    if options.part in (None, "extremes"):
        extremes()
    if options.part in (None, "cleanpatrick"):
        cleanpatrick(options.repeats)
    if options.part in (None, "wide"):
        wide(options.repeats)


if __name__ == "__main__":
    main()
