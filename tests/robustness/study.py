"""A small study with every kind of file that the commands read and write, and the commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

# The budget of a campaign, and its seed: `make torture` raises the one and changes the other.
CASES = int(os.environ.get("SOFTGOLD_CASES", "6"))
SEED = int(os.environ.get("SOFTGOLD_SEED", "0"))


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        arguments: The command line, run in the folder of the study.
        before: Command lines that make the older content of the target, which is to be replaced.
        together: Files that are replaced by a journal: only the next command makes them whole after a kill.
        inputs: Files that it reads.
        once: A second run has nothing left to do, and says so.
        share: The campaigns give it one case where they give this many to others.
        least: Smallest budget at which it is run at all.
        preload: Modules that the server imports before it forks for this command.
    """

    arguments: str
    before: tuple[str, ...] = ()
    together: bool = False
    inputs: tuple[str, ...] = ()
    once: bool = False
    share: int = 1
    least: int = 0
    preload: tuple[str, ...] = ()

    def cases(self, budget: int) -> int:
        """Return the number of cases out of the budget of a campaign."""
        return max(1, budget // self.share)


FIT = "fit votes.csv -o run --force --engine coordinate"
CALIBRATE = "calibrate run --experts experts.csv --force --n-bootstrap 20"
EVALUATE = "evaluate run --scores scores.csv --force --n-vote-bootstrap 5 --n-bootstrap 20"
RUN_FILES = tuple(
    f"run/{name}"
    for name in (
        "run.json",
        "soft_labels.csv",
        "annotators.csv",
        "posterior.npz",
        "votes.parquet",
        "calibration.json",
        "labels.csv",
        "experts_summary.csv",
        "evaluation.json",
        "metrics.csv",
    )
)
# What a fit by svi imports, and what one on a cluster does.
SVI = ("torch", "pyro", "softgold.models.crowd.svi", "softgold.models.crowd.optimise")
DASK = ("distributed", "distributed.deploy.local", "distributed.nanny", "dask.dataframe", "softgold.scale.dask")
# The same votes as tables of other kinds, and an export as lines.
KINDS = ("votes.parquet", "votes.xlsx", "votes.db", "votes.jsonl", "votes.zip", "votes.csv.gz", "prodigy.jsonl")

COMMANDS = {
    "fit": Command(FIT, inputs=("votes.csv",)),
    "baseline": Command(
        "baseline votes.csv -o base.csv --force",
        ("baseline other_votes.csv -o base.csv",),
        inputs=("votes.csv",),
    ),
    "predict": Command(
        "predict run votes.csv -o predicted.csv --force",
        ("predict run other_votes.csv -o predicted.csv",),
        inputs=("votes.csv", "run/run.json", "run/posterior.npz"),
    ),
    "sample-experts": Command(
        "sample-experts run -o sheet.csv --budget 12 --force",
        ("sample-experts run -o sheet.csv --budget 6",),
        together=True,
        inputs=("run/soft_labels.csv", "run/run.json"),
    ),
    "calibrate": Command(CALIBRATE, inputs=("experts.csv", "run/soft_labels.csv", "run/run.json")),
    "evaluate": Command(EVALUATE, inputs=("scores.csv", "run/soft_labels.csv", "run/labels.csv", "run/run.json")),
    "report": Command("report run --force", (f"{CALIBRATE} --seed 9",), inputs=RUN_FILES),
    "simulate": Command(
        "simulate -o drawn --n-items 30 --n-annotators 12 --seed 2 --force",
        ("simulate -o drawn --n-items 30 --n-annotators 12 --seed 1",),
    ),
    "convergence": Command(
        "convergence boxes.json -o agreed --subsets 5 --fraction 0.5 --force",
        ("convergence boxes.json -o agreed --subsets 4 --fraction 0.5",),
        inputs=("boxes.json",),
    ),
    "convergence of masks": Command(
        "convergence boxes.json -o masks --masks --subsets 5 --fraction 0.5 --force", inputs=("boxes.json",)
    ),
    "propose": Command(
        "duplicates propose x.npy --state plan.json -o pairs.csv --force",
        together=True,
        inputs=("x.npy", "plan.json"),
        once=True,
    ),
    "update": Command(
        "duplicates update asked.json pair_votes.csv", inputs=("asked.json", "pair_votes.csv"), once=True
    ),
    "uncertainty": Command(
        "uncertainty toy -o doubt --splits toy/splits.csv --force",
        ("uncertainty toy -o doubt --splits toy/splits.csv --patch-size 3",),
        inputs=("toy/splits.csv", "toy/clear000.npz"),
    ),
    "describe": Command("describe votes.csv --json", inputs=("votes.csv",)),
    "agreement": Command("agreement votes.csv", inputs=("votes.csv",)),
    "status": Command("duplicates status asked.json --json", inputs=("asked.json",)),
    "fit by svi": Command("fit votes.csv -o run --force --max-steps 20", inputs=("votes.csv",), share=8, preload=SVI),
    "fit votes on disk": Command(
        "fit votes.csv -o run --force --engine coordinate --memory 1GB", inputs=("votes.csv",), share=8
    ),
    "fit tasks": Command("fit tasks.csv -o study --force --engine coordinate", inputs=("tasks.csv",), share=4),
    "fit classes": Command("fit classes.csv -o sorts --force --engine coordinate", inputs=("classes.csv",), share=4),
    "fit counts": Command("fit counts.csv -o counted --force --engine coordinate", inputs=("counts.csv",), share=4),
    "predict tasks": Command(
        "predict study tasks.csv -o predicted.csv --force",
        ("predict study other_tasks.csv -o predicted.csv",),
        inputs=("study/run.json", "study/tasks/1-a/posterior.npz"),
        share=8,
    ),
    "baseline of tasks": Command(
        "baseline tasks.csv -o base.csv --force",
        ("baseline other_tasks.csv -o base.csv",),
        inputs=("tasks.csv",),
        share=8,
    ),
    "sample-experts of tasks": Command(
        "sample-experts study -o sheet.csv --budget 12 --force",
        ("sample-experts study -o sheet.csv --budget 6",),
        together=True,
        inputs=("study/run.json", "study/tasks/2-b/soft_labels.csv"),
        share=8,
    ),
    "sample-experts of classes": Command(
        "sample-experts sorts -o sheet.csv --budget 12 --force",
        ("sample-experts sorts -o sheet.csv --budget 6",),
        together=True,
        share=8,
    ),
    "calibrate classes": Command(
        "calibrate sorts --experts class_experts.csv --force --n-bootstrap 20",
        ("calibrate sorts --experts class_experts.csv --n-bootstrap 20 --seed 5",),
        inputs=("class_experts.csv", "sorts/run.json"),
        share=8,
    ),
    "calibrate tasks": Command(
        "calibrate study --experts task_experts.csv --force --n-bootstrap 20",
        inputs=("task_experts.csv", "study/run.json", "study/tasks/2-b/soft_labels.csv"),
        share=4,
    ),
    "evaluate tasks": Command(
        "evaluate study --scores task_scores.csv --force --n-bootstrap 20 --n-vote-bootstrap 0",
        inputs=("task_scores.csv",),
        share=8,
    ),
    "evaluate classes": Command(
        "evaluate sorts --scores class_scores.csv --force --n-bootstrap 20",
        inputs=("class_scores.csv", "sorts/run.json"),
        share=8,
    ),
    "report tasks": Command(
        "report study --force",
        ("calibrate study --experts task_experts.csv --force --n-bootstrap 20 --seed 9",),
        inputs=("study/run.json", "study/tasks/1-a/run.json", "study/tasks/2-b/calibration.json"),
        share=8,
    ),
    "next": Command(
        "next fitted --budget 6 -o bought.csv --force",
        ("next fitted --budget 3 -o bought.csv",),
        inputs=("fitted/run.json", "fitted/posterior.npz", "fitted/votes.parquet"),
        share=8,
    ),
    "forecast": Command(
        "next fitted --forecast -o forecast.csv --ambiguous doubtful.csv --force",
        ("next fitted --forecast --seed 3 -o forecast.csv", "next fitted --budget 3 -o doubtful.csv"),
        together=True,
        share=8,
    ),
    "update votes": Command(
        "update fitted more_votes.csv",
        inputs=("more_votes.csv", "fitted/run.json", "fitted/posterior.npz"),
        once=True,
        share=4,
    ),
    "import": Command(
        "import export.json -o imported.csv --gold-out gold.csv --names-out names.csv --force",
        tuple(f"baseline votes.csv -o {name}.csv" for name in ("imported", "gold", "names")),
        together=True,
        inputs=("export.json",),
        share=4,
    ),
    **{f"describe {kind}": Command(f"describe {kind}", inputs=(kind,), share=8) for kind in KINDS},
    "demo": Command("demo -o demo_run --force", ("fit votes.csv -o demo_run --model mean",), share=20, least=40),
}
COMMANDS = {name: command for name, command in COMMANDS.items() if command.least <= CASES}
WRITING = [
    name for name in COMMANDS if not name.startswith(("describe", "agreement", "status", "convergence of masks"))
]


def write_inputs(folder: Path) -> None:
    """Write the inputs of all commands."""
    random = np.random.default_rng(7)
    truth = random.random(24) < 0.4
    for name, flip in (("votes.csv", 0.2), ("other_votes.csv", 0.3)):
        votes = [(f"i{i}", f"a{a}", int(truth[i] ^ (random.random() < flip))) for i in range(24) for a in range(5)]
        pd.DataFrame(votes, columns=["item", "annotator", "vote"]).to_csv(folder / name, index=False)
    more = [(f"i{i}", f"a{a}", int(truth[i - 20])) for i in range(20, 30) for a in range(5, 8)]
    pd.DataFrame(more, columns=["item", "annotator", "vote"]).to_csv(folder / "more_votes.csv", index=False)
    write_other_kinds(folder)
    write_study_inputs(folder, random)
    experts = [(f"i{i}", f"e{e}", int(truth[i] ^ (random.random() < 0.05))) for i in range(24) for e in range(2)]
    pd.DataFrame(experts, columns=["item", "annotator", "label"]).to_csv(folder / "experts.csv", index=False)
    scores = {name: truth + random.normal(size=24) for name in ("good", "bad")}
    pd.DataFrame({"item": [f"i{i}" for i in range(24)], **scores}).to_csv(folder / "scores.csv", index=False)
    (folder / "boxes.json").write_text(json.dumps(_boxes(random)))
    samples = np.repeat(random.normal(size=(6, 4)), 3, axis=0) + 0.01 * random.normal(size=(18, 4))
    np.save(folder / "x.npy", samples)
    from softgold.imaging.segmentation.simulation import ToySettings, write_toy_study

    write_toy_study(
        folder / "toy", ToySettings(n_validation=1, n_blurred=2, n_clear=2, n_shifted=1, size=12, n_members=3)
    )


def write_other_kinds(folder: Path) -> None:
    """Write the votes as tables of other kinds, and an export of Prodigy."""
    votes = pd.read_csv(folder / "votes.csv")
    votes.to_parquet(folder / "votes.parquet")
    votes.to_excel(folder / "votes.xlsx", index=False)
    votes.to_csv(folder / "votes.csv.gz", index=False)
    votes.to_json(folder / "votes.jsonl", orient="records", lines=True)
    with closing(sqlite3.connect(folder / "votes.db")) as base:
        votes.to_sql("votes", base, index=False)
    with zipfile.ZipFile(folder / "votes.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "votes.csv", "votes.csv")
    options = [{"id": "yes", "text": "yes"}, {"id": "no", "text": "no"}]
    lines = [
        {"text": item, "_input_hash": item, "_task_hash": at, "_annotator_id": person, "_view_id": "choice"}
        | {"options": options, "accept": ["no", "yes"][vote : vote + 1], "answer": "accept"}
        for at, (item, person, vote) in enumerate(votes.itertuples(index=False))
    ]
    (folder / "prodigy.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def write_study_inputs(folder: Path, random: np.random.Generator) -> None:
    """Write votes on several questions and on several classes, counts of votes, and the export of a platform."""
    truth = {(task, i): int(random.random() < 0.4) for task in "ab" for i in range(12)}

    def answers(flip: float, who: list[str]) -> list[tuple[str, str, int, str]]:
        asked = ((task, i, person) for task, i in truth for person in who)
        return [(f"{t}{i}", person, truth[t, i] ^ int(random.random() < flip), t) for t, i, person in asked]

    people = [f"a{a}" for a in range(5)]
    for name, flip, who in (
        ("tasks.csv", 0.2, people),
        ("other_tasks.csv", 0.3, people),
        ("task_experts.csv", 0.05, ["e0", "e1"]),
    ):
        value = "label" if "experts" in name else "vote"
        table = pd.DataFrame(answers(flip, who), columns=["item", "annotator", value, "task"])
        table.to_csv(folder / name, index=False)
    for name, seed in (("classes.csv", 1), ("other_classes.csv", 2)):
        draws = np.random.default_rng(seed)
        chosen = [
            (f"i{i}", f"a{a}", "xyz"[draws.choice(3, p=np.roll([0.8, 0.1, 0.1], i))])
            for i in range(15)
            for a in range(5)
        ]
        pd.DataFrame(chosen, columns=["item", "annotator", "vote"]).to_csv(folder / name, index=False)
    answered = [(f"i{i}", person, "xyz"[i % 3]) for i in range(15) for person in ("e0", "e1")]
    pd.DataFrame(answered, columns=["item", "annotator", "label"]).to_csv(folder / "class_experts.csv", index=False)
    shares = random.dirichlet(np.ones(3), 15)
    scores = pd.DataFrame(shares, columns=["p_x", "p_y", "p_z"])
    scores.insert(0, "item", [f"i{i}" for i in range(15)])
    scores.to_csv(folder / "class_scores.csv", index=False)
    scored = pd.DataFrame({"item": [f"{task}{i}" for task, i in truth], "model": random.normal(size=len(truth))})
    scored.to_csv(folder / "task_scores.csv", index=False)
    counts = {"item": [f"i{i}" for i in range(12)], "n_positive": random.integers(0, 5, 12), "n_votes": 5}
    pd.DataFrame(counts).to_csv(folder / "counts.csv", index=False)
    (folder / "export.json").write_text(json.dumps([_exported(i, random) for i in range(8)]))


def _exported(item: int, random: np.random.Generator) -> dict[str, object]:
    """Return one task of Label Studio, with a gold label and the answers of two people."""

    def answer(person: str, gold: bool) -> dict[str, object]:
        choice = ["yes", "no"][int(random.integers(2))]
        result = {"from_name": "seen", "to_name": "image", "type": "choices", "value": {"choices": [choice]}}
        who = {"id": len(person), "email": f"{person}@example.org"}
        return {"completed_by": who, "ground_truth": gold, "was_cancelled": False, "result": [result]}

    given = [answer("ann", gold=False), answer("bernard", gold=False), answer("chief", gold=True)]
    return {"id": item, "data": {"image": f"{item}.png"}, "annotations": given}


def _boxes(random: np.random.Generator) -> dict[str, object]:
    notes = []
    for image in range(8):
        for rater in ("ann", "bob", "cid"):
            x, y = (float(value) for value in random.integers(0, 10, 2))
            outline = [x, y, x + 20, y, x + 20, y + 20, x, y + 20]
            note = {"id": len(notes), "image_id": image, "category_id": 1, "annotator": rater}
            notes.append(note | {"bbox": [x, y, 20.0, 20.0], "segmentation": [outline]})
    images = [{"id": image, "height": 40, "width": 40} for image in range(8)]
    return {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": notes}


SETUP = (
    "fit other_votes.csv -o run --model mean",
    "calibrate run --experts experts.csv --n-bootstrap 20 --seed 5",
    "evaluate run --scores scores.csv --n-vote-bootstrap 0 --n-bootstrap 20",
    "report run",
    "fit votes.csv -o fitted --engine coordinate",
    "fit other_tasks.csv -o study --model mean",
    "calibrate study --experts task_experts.csv --n-bootstrap 20 --seed 5",
    "fit other_classes.csv -o sorts --model mean",
    "evaluate sorts --scores class_scores.csv --n-bootstrap 20 --seed 3",
    "fit counts.csv -o counted --model mean",
    "duplicates propose x.npy --state asked.json -o asked.csv",
    "duplicates propose x.npy --state plan.json -o pairs.csv",
)


def write_pair_votes(folder: Path) -> None:
    """Answer the pairs of the first round, and let the plan wait for the second."""
    pairs = pd.read_csv(folder / "asked.csv")
    same = [int(int(a) // 3 == int(b) // 3) for a, b in zip(pairs["first"], pairs["second"], strict=True)]
    votes = pd.DataFrame({"item": pairs["item"], "annotator": "a", "vote": same})
    votes.to_csv(folder / "pair_votes.csv", index=False)


def linked(folder: Path, to: Path) -> Path:
    """Copy a folder with links in place of files: quick, as long as no command changes a file that is there.

    None should: new files replace old ones. A test that works in such copies compares the folder itself at its end.
    """
    return Path(shutil.copytree(folder, to, copy_function=os.link))


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the content of every file, timings left out, that is not a temporary of softgold; folders are empty."""
    paths = (path for path in folder.rglob("*") if "/.softgold-" not in str(path))
    return {
        str(path.relative_to(folder)): _without_timings(path.read_bytes()) if path.is_file() else b"" for path in paths
    }


def _without_timings(data: bytes) -> bytes:
    return re.sub(rb'"\w*seconds": [0-9.e+-]+', b"", re.sub(rb"[0-9.]+ s(?:econds)?(?![a-z])", b"", data))


def strays(folder: Path) -> list[str]:
    """Return the temporaries of softgold that are left."""
    return [str(path) for path in folder.rglob("*") if path.name.startswith(".softgold-")]
