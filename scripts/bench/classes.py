"""Compare soft labels of several classes with crowd-kit's Dawid-Skene and MACE and with the vote share.

    python scripts/bench/classes.py DIR [DIR ...]

A DIR has votes.csv (`item, annotator, vote`, any values) and truth.csv (`item` and the true class). Without a DIR a
table is simulated: five classes, 300 items, 30 annotators of mixed skill. It prints accuracy and log loss (clipped).
Without crowd-kit (pip install 'softgold[baselines]') its methods are left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import softgold
from softgold.tables.classes import combine_classes

FloatArray = NDArray[np.float64]
CLIP = 1e-4


def simulated(seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return votes and truth of a table with five classes."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, 5, 300), rng.beta(4, 2, 30)
    rows = [
        (f"i{item:03d}", f"a{who:02d}", f"class {truth[item] if rng.random() < skill[who] else rng.integers(0, 5)}")
        for item in range(300)
        for who in rng.choice(30, 5, replace=False)
    ]
    labels = pd.Series([f"class {label}" for label in truth], index=[f"i{item:03d}" for item in range(300)])
    return pd.DataFrame(rows, columns=["item", "annotator", "vote"]), labels


def ours(votes: pd.DataFrame) -> pd.DataFrame:
    """Return soft labels of the two-class model, one class against the rest."""
    values = sorted(votes["vote"].unique())
    if len(values) == 2:
        return two_classes(votes, values)
    study = softgold.read_study(votes, duplicates="first")
    fits = softgold.fit_tasks(study.votes, engine="coordinate")
    found = combine_classes({name: fit.posterior.soft_labels() for name, fit in fits.items()})
    return pd.DataFrame(found.p, index=found.item_ids, columns=list(found.classes))


def two_classes(votes: pd.DataFrame, values: list[str]) -> pd.DataFrame:
    """Return soft labels of one question: the second value is the positive one."""
    table = softgold.read_votes(votes, positive=values[1], duplicates="first")
    found = softgold.fit(table, engine="coordinate").posterior.soft_labels()
    return pd.DataFrame({values[0]: 1 - found.p, values[1]: found.p}, index=found.item_ids)


def vote_share(votes: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the votes for each class."""
    return pd.crosstab(votes["item"], votes["vote"], normalize="index")


def crowdkit(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return an aggregator of crowd-kit."""

    def aggregate(votes: pd.DataFrame) -> pd.DataFrame:
        from crowdkit import aggregation

        table = votes.rename(columns={"item": "task", "annotator": "worker", "vote": "label"})
        model = getattr(aggregation, name)() if name != "DawidSkene" else aggregation.DawidSkene(n_iter=100)
        return model.fit_predict_proba(table)

    return aggregate


def quality(p: pd.DataFrame, truth: pd.Series) -> tuple[float, float]:
    """Return accuracy and log loss on the items with a known truth."""
    known = truth[truth.index.isin(p.index)]
    values = p.reindex(index=known.index).fillna(0.0)
    at = values.columns.get_indexer(pd.Index(known))
    right = np.where(at < 0, 0.0, values.to_numpy()[np.arange(len(at)), at])
    accuracy = float((values.idxmax(axis=1) == known).mean())
    return accuracy, float(-np.log(np.clip(right, CLIP, 1.0)).mean())


def read_tables(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read votes and truth as text; a class may be called none or NA, and an empty vote is none."""
    votes = pd.read_csv(folder / "votes.csv", dtype="str", keep_default_na=False)
    votes = votes[votes["vote"].str.strip() != ""].drop_duplicates(["item", "annotator"])
    truth = pd.read_csv(folder / "truth.csv", dtype="str", keep_default_na=False).set_index("item")
    return votes, truth["label" if "label" in truth else truth.columns[0]]


def main() -> None:
    """Print one line per table and method, and the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {"simulated": simulated()} if not options.folders else {}
    for folder in options.folders:
        tables[folder.name] = read_tables(folder)
    methods = {
        "softgold": ours,
        "vote share": vote_share,
    }
    if find_spec("crowdkit") is None:
        print("Dawid-Skene and MACE are left out: pip install 'softgold[baselines]'", flush=True)
    else:
        methods |= {"Dawid-Skene": crowdkit("DawidSkene"), "MACE": crowdkit("MACE")}
    rows = []
    for table, (votes, truth) in tables.items():
        for method, aggregate in methods.items():
            accuracy, loss = quality(aggregate(votes), truth)
            rows.append({"table": table, "method": method, "accuracy": accuracy, "log loss": loss})
            print(f"{table:<20} {method:<12} accuracy {accuracy:.4f}  log loss {loss:.4f}", flush=True)
    means = pd.DataFrame(rows).groupby("method", sort=False)[["accuracy", "log loss"]].mean()
    print(means.round(4).to_string())


if __name__ == "__main__":
    main()
