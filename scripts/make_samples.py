"""Make `data_samples/`: a small simulated study. Run again, it writes the same bytes.

python scripts/make_samples.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from softgold.output import atomic_file, write_table
from softgold.simulation import Simulation, simulate

SEED = 1
DECIMALS = 4
FOLDER = Path(__file__).resolve().parent.parent / "data_samples"

README = """\
# A small simulated study

Simulated data: `softgold.simulate(preset="small", seed={seed})`, written by `scripts/make_samples.py`, which
reproduces these files byte for byte. `softgold simulate --preset small --seed {seed}` draws the same study.

| file | columns | rows | contents |
|---|---|---|---|
{files}

The question is binary; {n_positive} of the {n_items} items are positive. Annotator a votes 1 on item i with probability
sigmoid(c_a b_i + d_a + u_i). The appearance b is around +m for positives and -m for negatives, m = sqrt(3); an item
with the other sign is tricky. u is the item's pull, c the annotator's ability and d the lean.

- **Annotators**: {n_annotators}, of whom {n_random} vote at random and {n_adversarial} adversarially; the busiest gave
  {most} of the {n_votes} votes, the least busy {least}.
- **Votes**: {fewest_votes} to {most_votes} per item, {mean_votes:.1f} on average.
- **Experts**: {n_experts}, on {n_expert_items} items drawn at random. Expert j is wrong with probability
  e_j + (1 - 2 e_j) sigmoid(-k v) with e = {errors} and k = {ability:g}; v is m plus b in the direction of the
  item's class, so that errors are rare on clear items and more frequent on tricky ones.
- **Models**: AUROCs against the true class are {aurocs}. `model_1` and `model_4` err on clear and
  ambiguous items alike, the others mostly where people disagree.

A real study would not have `truth.csv` and `annotators_truth.csv`.
"""

MEANING = {
    "votes": "votes of the crowd",
    "experts": "expert labels",
    "scores": "scores of five models",
    "truth": "class, appearance b and pull u of the items",
    "annotators_truth": "ability c, kind, lean d, sensitivity and specificity of the annotators",
}


def main(folder: Path) -> None:
    """Write the study and its description into `folder`."""
    study = simulate("small", seed=SEED)
    folder.mkdir(exist_ok=True)
    for name, table in study.tables(DECIMALS).items():
        write_table(table, folder / f"{name}.csv", force=True)
    with atomic_file(folder / "README.md", force=True) as temporary:
        temporary.write_text(describe(study), encoding="utf-8", newline="\n")


def describe(study: Simulation) -> str:
    """Return the README of a study that has experts and models."""
    votes, truth, settings = study.votes, study.truth, study.settings
    assert study.experts is not None
    tables = study.tables(DECIMALS)
    files = [
        f"| `{name}.csv` | `{', '.join(tables[name].columns)}` | {len(tables[name])} | {meaning} |"
        for name, meaning in MEANING.items()
    ]
    return README.format(
        seed=SEED,
        files="\n".join(files),
        n_positive=int(truth.label.sum()),
        n_items=votes.n_items,
        n_annotators=votes.n_annotators,
        n_random=int((truth.kind == "random").sum()),
        n_adversarial=int((truth.kind == "adversarial").sum()),
        most=votes.annotator_counts.max(),
        least=votes.annotator_counts.min(),
        n_votes=votes.n_votes,
        fewest_votes=votes.item_counts.min(),
        most_votes=votes.item_counts.max(),
        mean_votes=votes.item_counts.mean(),
        n_experts=len(study.experts.expert_ids),
        n_expert_items=len(study.experts.item_ids),
        errors=", ".join(map(str, settings.expert_errors)),
        ability=settings.expert_ability,
        aurocs=", ".join(map(str, settings.model_aurocs)),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
