"""`softgold duplicates`: rounds of pairs to show to annotators, kept in a small file between the rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.common import AsJson, Force, OptionalOutput, Output, Quiet, Seed, print_json, say, write_or_print
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from softgold.imaging.duplicates import DuplicatePlan, EmbeddingSpace, MatrixSpace, Space
    from softgold.tables.soft_labels import SoftLabels

Embeddings = Annotated[
    Path,
    typer.Argument(
        metavar="EMBEDDINGS", help="NumPy file (.npy, or .npz with one array): one row per sample, or all distances."
    ),
]
State = Annotated[Path, typer.Option("--state", metavar="FILE", help="Small JSON file that keeps the plan.")]
MetricChoice = Literal["cosine", "euclidean", "precomputed"]
MetricOption = Annotated[
    MetricChoice, typer.Option(help="Distance of embeddings; precomputed: the file has the distances themselves.")
]
SearchChoice = Literal["auto", "exact", "hnsw"]
SearchOption = Annotated[
    SearchChoice,
    typer.Option("--search", help="Exact, or by a graph index for many samples (extra 'duplicates')."),
]
MethodOption = Annotated[str, typer.Option("--method", help="How to aggregate: any model of fit.")]
Threshold = Annotated[float, typer.Option(help="A pair is positive if its soft label is above this.")]


command = typer.Typer(
    name="duplicates",
    help="Plan which pairs to ask about to find duplicates.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)


@command.command()
def propose(
    embeddings: Embeddings,
    state: State,
    output: Output,
    ids: Annotated[
        Path | None,
        typer.Option("--ids", metavar="FILE", help="Text file with one id per line; row numbers if left out."),
    ] = None,
    metric: MetricOption = "cosine",
    search: SearchOption = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Propose the next round of pairs.

    A plan begins if the state file does not exist. The pairs are written as a table: item, first, second, distance,
    round. Show them, collect votes on the items, and give those to `softgold duplicates update`.
    """
    from softgold.imaging import duplicates
    from softgold.output import check_target

    check_target(output, force=force)
    check_target(state, force=True)
    space = _space(embeddings, metric, search)
    plan = _load_or_start(state, ids, space)
    plan = duplicates.propose(plan, space)
    if plan.awaited is None:
        duplicates.save_plan(plan, state, force=True)
        say("nothing is left to ask: the plan is finished", quiet=quiet)
        return
    _write_round(plan, state, output, force)
    say(f"round {len(plan.rounds)}: {len(plan.awaited):,} pairs, written: {output}", quiet=quiet)


def _write_round(plan: DuplicatePlan, state: Path, output: Path, force: bool) -> None:
    """Write the plan and the pairs of its last round together: one of them alone is of no use."""
    from softgold.imaging import duplicates
    from softgold.output import atomic_files, check_target, write_table

    check_target(output, force=force)
    with atomic_files([state, output], force=True) as (state_file, pairs_file):
        duplicates.save_plan(plan, state_file)
        pairs = plan.questions().drop(columns="positive")
        write_table(pairs.tail(0 if plan.awaited is None else len(plan.awaited)), pairs_file)


@command.command()
def update(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The plan.")],
    votes: Annotated[
        str | None, typer.Argument(metavar="VOTES", help="Votes on the pairs: item, annotator, vote.")
    ] = None,
    soft_labels: Annotated[
        Path | None, typer.Option("--soft-labels", metavar="FILE", help="Soft labels of the pairs, instead of votes.")
    ] = None,
    method: MethodOption = "majority",
    threshold: Threshold = 0.5,
    missing: Annotated[
        Literal["error", "negative"], typer.Option(help="A pair of the round without a vote.")
    ] = "error",
    quiet: Quiet = False,
) -> None:
    """Take the votes on the last round.

    They are aggregated by a model; or give soft labels from elsewhere. Votes on earlier rounds may be in the table;
    only pairs of the last round are answered by them.
    """
    from softgold.imaging import duplicates

    plan = duplicates.load_plan(state)
    labels = _labels(votes, soft_labels, method)
    answers = duplicates.answers_from_labels(plan, labels, threshold=threshold, missing=missing)
    plan = duplicates.update(plan, answers)
    duplicates.save_plan(plan, state, force=True)
    say(f"round {len(plan.rounds)}: {int(answers.sum()):,} of {len(answers):,} pairs are near duplicates", quiet=quiet)
    next_step = "the plan is finished" if plan.finished else "propose the next round"
    say(next_step, quiet=quiet)


@command.command()
def status(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The plan.")],
    output: OptionalOutput = None,
    table: Annotated[
        Literal["components", "pairs"] | None,
        typer.Option("--table", help="Write a table: the component of each sample, or all pairs with their answers."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a plan.

    Prints rounds, pairs, components by size, and the bound of the assumptions.
    """
    from softgold.imaging import duplicates

    if table is not None and output is None and as_json:
        raise UsageError("--table without -o and --json both print to standard output; ask for one of them")
    if table is None and output is not None:
        raise UsageError("-o says where a table goes; say which with --table components|pairs")
    plan = duplicates.load_plan(state)
    now = duplicates.status(plan)
    if table is not None:
        write_or_print(_component_table(plan) if table == "components" else plan.questions(), output, force=force)
    if as_json:
        print_json({**vars(now), "sentence": now.sentence})
    for number, (pairs, found) in enumerate(zip(now.pairs, (*now.positives, None), strict=False), start=1):
        answer = "awaits answers" if found is None else f"{found:,} positive"
        say(f"round {number}: {pairs:,} pairs, {answer}", quiet=quiet)
    sizes = ", ".join(f"{count:,} of {size}" for size, count in now.components.items()) or "none yet"
    say(f"components: {sizes}", quiet=quiet)
    say(now.sentence, quiet=quiet)
    say("finished" if now.finished else "not finished", quiet=quiet)


@command.command()
def audit(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The plan.")],
    output: Output,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="NAME=FILE", help="Other embeddings of the same samples; may be repeated."),
    ] = None,
    sample: Annotated[
        Path | None, typer.Option("--sample", metavar="FILE", help="A table that this command drew, now with --votes.")
    ] = None,
    votes: Annotated[str | None, typer.Option("--votes", metavar="FILE", help="Votes on the drawn pairs.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Nearest pairs of each source to draw from.")] = 5000,
    per_source: Annotated[int, typer.Option(min=1, help="Pairs to draw from each.")] = 150,
    metric: MetricOption = "cosine",
    search: SearchOption = "auto",
    method: MethodOption = "majority",
    threshold: Threshold = 0.5,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Check what the plan missed.

    Draws pairs that are near in other representations, or bounds from votes on them what the plan missed.
    """
    from softgold.imaging import duplicates
    from softgold.output import check_target

    check_target(output, force=force)
    if (sample is None) != (votes is None) or (sample is None) == (source is None):
        raise UsageError("give --source NAME=FILE to draw pairs, or --sample and --votes to judge those drawn before")
    if sample is not None and votes is not None:
        _judge(sample, _labels(votes, None, method), threshold, output, force, quiet)
        return
    plan = duplicates.load_plan(state)
    spaces = {name: _space(path, metric, search) for name, path in map(_named_file, source or ())}
    drawn = duplicates.sample_audit(plan, spaces, top=top, per_source=per_source, seed=seed)
    write_or_print(drawn, output, force=force)
    say(f"{len(drawn):,} pairs, written: {output}", quiet=quiet)


def _judge(sample: Path, labels: SoftLabels, threshold: float, output: Path, force: bool, quiet: bool) -> None:
    import pandas as pd

    from softgold.imaging import duplicates

    drawn = _read_sample(sample)
    place = labels.item_ids.get_indexer(pd.Index(drawn["item"]))
    if (place < 0).any():
        name = drawn["item"].iloc[int((place < 0).argmax())]
        raise InputError(f"{int((place < 0).sum())} of {len(drawn)} pairs have no vote, {name!r} first")
    bounds = duplicates.audit_bounds(drawn, labels.p[place] > threshold)
    write_or_print(pd.DataFrame([vars(bound) for bound in bounds]), output, force=force)
    for bound in bounds:
        interval = f"{100 * bound.share:.1f} % [{100 * bound.low:.1f}, {100 * bound.high:.1f}]"
        found = f"{bound.n_duplicates} near duplicates of {bound.n_audited} pairs"
        say(f"{bound.source}: {found}, {interval}, {bound.n_missed} of them missed", quiet=quiet)


def _read_sample(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype={"item": "str", "source": "str", "first": "str", "second": "str"})
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    absent = {"item", "source", "pool", "same_component"} - set(frame.columns)
    if absent:
        raise InputError(f"{path} is not a table that the audit drew: it has no column {sorted(absent)[0]!r}")
    return frame


def _load_or_start(state: Path, ids: Path | None, space: Space) -> DuplicatePlan:
    from softgold.imaging import duplicates

    if state.exists():
        if ids is not None:
            raise UsageError(f"{state} exists and has the ids already; --ids is for a new plan")
        return duplicates.load_plan(state)
    return duplicates.start_plan(range(len(space)) if ids is None else _read_ids(ids), space)


def _read_ids(path: Path) -> list[str]:
    try:
        names = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    blank = next((number for number, name in enumerate(names, start=1) if not name.strip()), None)
    if blank is not None:
        raise InputError(f"{path}, line {blank}: the id is blank")
    return names


def _space(path: Path, metric: MetricChoice, search: SearchChoice) -> EmbeddingSpace | MatrixSpace:
    from softgold.imaging.duplicates import EmbeddingSpace, MatrixSpace
    from softgold.readers.arrays import read_array

    array = read_array(path)
    return MatrixSpace.of(array) if metric == "precomputed" else EmbeddingSpace.of(array, metric=metric, method=search)


def _named_file(text: str) -> tuple[str, Path]:
    name, found, path = text.partition("=")
    if not (found and name and path):
        raise UsageError(f"--source must be NAME=FILE, got {text!r}")
    return name, Path(path)


def _labels(votes: str | None, soft_labels: Path | None, model: str) -> SoftLabels:
    from softgold.models.base import find_model, fit
    from softgold.readers import read_soft_labels, read_votes

    if (votes is None) == (soft_labels is None):
        raise UsageError("give a table of votes, or --soft-labels FILE")
    if votes is None:
        return read_soft_labels(str(soft_labels))
    deterministic: dict[str, Any] = {"engine": "coordinate"} if "engine" in find_model(model).options else {}
    return fit(read_votes(votes), model=model, **deterministic).posterior.soft_labels()


def _component_table(plan: DuplicatePlan) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    sizes = np.bincount(plan.component)
    return pd.DataFrame({"sample": plan.ids, "component": plan.component, "size": sizes[plan.component]})
