"""A round of the near-duplicate plan beside building the graph index that it uses, in one run.

Prints seconds, their ratio, and how many of the nearest neighbours the index found on a sample of the rows:

    python scripts/bench/duplicates.py --samples 100000 --dimensions 384
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.imaging.duplicates import EmbeddingSpace, propose, start_plan, update
from softgold.imaging.duplicates.spaces import build_index


def draw_embeddings(n: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    """Return embeddings of a tenth near duplicates, in a space of fewer dimensions as those of images are."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, 32)).astype(np.float32)
    copies = rng.permutation(n)[: n // 10]
    latent[copies] = latent[rng.integers(0, n, len(copies))] + 0.02 * rng.normal(size=(len(copies), 32))
    return np.tanh(latent @ rng.normal(size=(32, dimensions)).astype(np.float32) / 4)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long an action takes, and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def recall(
    space: EmbeddingSpace, first: NDArray[np.int64], second: NDArray[np.int64], rows: NDArray[np.int64]
) -> float:
    """Share of the rows whose true nearest neighbour is in one of the proposed pairs."""
    proposed = set(zip(first.tolist(), second.tolist(), strict=True))
    vectors = space.vectors
    near = (vectors[rows] @ vectors.T).astype(np.float64)
    near[np.arange(len(rows)), rows] = -np.inf
    best = near.argmax(axis=1)
    return float(
        np.mean([(min(i, j), max(i, j)) in proposed for i, j in zip(rows.tolist(), best.tolist(), strict=True)])
    )


def main() -> None:
    """Parse the options, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    embeddings = draw_embeddings(options.samples, options.dimensions, options.seed)
    space = EmbeddingSpace.of(embeddings, method="hnsw")
    build_seconds, _ = timed(lambda: build_index(space.vectors))
    plan = start_plan(range(options.samples), space)
    round_seconds, plan = timed(lambda: propose(plan, space))
    rows = np.random.default_rng(options.seed).permutation(options.samples)[:500]
    found = recall(space, plan.awaited.first, plan.awaited.second, rows)
    near = plan.awaited.distance < np.quantile(plan.awaited.distance, 0.1)
    second_seconds, later = timed(lambda: propose(update(plan, near), space))
    report = {
        "samples": options.samples,
        "dimensions": options.dimensions,
        "build_index_seconds": round(build_seconds, 2),
        "first_round_seconds": round(round_seconds, 2),
        "second_round_seconds": round(second_seconds, 2),
        "first_round_to_build": round(round_seconds / build_seconds, 3),
        "pairs": [len(part) for part in later.rounds],
        "nearest_found": round(found, 4),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
