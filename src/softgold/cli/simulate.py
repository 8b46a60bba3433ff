"""`softgold simulate`: votes, expert labels and model scores with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.common import AsJson, Force, Output, Quiet, Seed, print_json, progress, say
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.simulation import Simulation

MARKER = "simulation.json"

IssueChoice = Literal["off_topic", "near_duplicates", "label_errors"]


def command(
    context: typer.Context,
    output: Output,
    preset: Annotated[
        Literal["cleanpatrick", "small", "segmentation"] | None,
        typer.Option(
            help="small: an invented study of 2000 items. cleanpatrick: sizes, prevalences and expert agreement of "
            "that study. segmentation: a toy study for 'uncertainty'. Other options change a preset."
        ),
    ] = None,
    issue: Annotated[
        IssueChoice | None,
        typer.Option(help="One issue type of cleanpatrick; default: all three, one folder each."),
    ] = None,
    model: Annotated[
        Literal["two-class", "glad"] | None,
        typer.Option(
            help="Vote model. two-class (default): with leans, pulls and items that look like the other class. "
            "glad: the published model, without these."
        ),
    ] = None,
    scale: Annotated[float, typer.Option(help="Factor on the numbers of items and votes.")] = 1.0,
    n_items: Annotated[int | None, typer.Option(help="Number of items.")] = None,
    n_annotators: Annotated[int | None, typer.Option(help="Number of annotators.")] = None,
    prevalence: Annotated[float | None, typer.Option(help="Share of positive items.")] = None,
    tricky_spread: Annotated[
        float | None, typer.Option(help="two-class: spread of b within a class; larger makes more items tricky.")
    ] = None,
    pull_sd: Annotated[
        float | None, typer.Option(help="two-class: standard deviation of the pull, which shifts all votes on an item.")
    ] = None,
    difficulty_scale: Annotated[float | None, typer.Option(help="glad: spread of |b|; small is hard.")] = None,
    positive_ease: Annotated[float | None, typer.Option(help="glad: factor on |b| of positive items.")] = None,
    ability_mean: Annotated[float | None, typer.Option(help="Mean ability of helpful annotators.")] = None,
    ability_sd: Annotated[float | None, typer.Option(help="Standard deviation of abilities.")] = None,
    lean_mean: Annotated[
        float | None, typer.Option(help="two-class: mean lean; above 0, annotators tend to vote yes.")
    ] = None,
    lean_sd: Annotated[float | None, typer.Option(help="two-class: standard deviation of the leans.")] = None,
    adversarial_share: Annotated[float | None, typer.Option(help="Share of annotators with c < 0.")] = None,
    random_share: Annotated[float | None, typer.Option(help="Share of annotators with c = 0.")] = None,
    votes_per_item: Annotated[float | None, typer.Option(help="Mean number of responses per item.")] = None,
    vote_distribution: Annotated[
        Literal["fixed", "poisson", "long_tail"] | None, typer.Option(help="Distribution of responses per item.")
    ] = None,
    activity_spread: Annotated[float | None, typer.Option(help="Spread of annotators' activity (log scale).")] = None,
    n_components: Annotated[int | None, typer.Option(help="Number of connected components.")] = None,
    abstention_rate: Annotated[float | None, typer.Option(help="Share of empty responses.")] = None,
    expert_errors: Annotated[
        str | None, typer.Option(metavar="E1,E2,...", help="Flat error rate of each expert; 'none' for no experts.")
    ] = None,
    expert_ability: Annotated[float | None, typer.Option(help="Ability of the experts.")] = None,
    n_expert_items: Annotated[int | None, typer.Option(help="Number of items with expert labels.")] = None,
    model_aurocs: Annotated[
        str | None, typer.Option(metavar="A1,A2,...", help="AUROC of each model; 'none' for no models.")
    ] = None,
    model_ambiguity: Annotated[
        str | None,
        typer.Option(metavar="G1,G2,...", help="How far each model errs on ambiguous items only, 0 to 1."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a study with a known truth.

    Writes votes, expert labels, model scores and the truth to a folder.
    """
    from softgold.output import check_target

    if preset == "segmentation":
        _write_segmentation(context, output, seed, force=force, quiet=quiet, as_json=as_json)
        return
    check_target(output, force=force, directory=True, marker=MARKER)
    issues = _issues(preset, issue)
    settings = _changed_settings(context.params)
    with progress("simulating", len(issues), quiet=quiet) as advance:
        summaries = _write(output, preset, issues, {"scale": scale, **settings}, force, advance)
    for summary in summaries:
        say(_sentence(summary), quiet=quiet or as_json)
    if as_json:
        print_json({"output": output, "studies": summaries})
    else:
        say(f"written to {output}", quiet=quiet)


def _write_segmentation(
    context: typer.Context, output: Path, seed: int, *, force: bool, quiet: bool, as_json: bool
) -> None:
    """Write the toy segmentation study; options about votes do not apply."""
    from softgold.imaging.segmentation.simulation import write_toy_study

    others = _changed_settings(context.params).keys() - {"seed"}
    if others or context.params["issue"] is not None or context.params["scale"] != 1:
        raise UsageError("--preset segmentation has no votes; leave out the options about votes")
    write_toy_study(output, seed=seed, force=force)
    if as_json:
        print_json({"output": output, "cases": len(list(output.glob("*.npz")))})
    else:
        command = f"softgold uncertainty {output} --splits {output / 'splits.csv'} -o RESULT"
        say(f"written to {output}; evaluate it with: {command}", quiet=quiet)


def _issues(preset: str | None, issue: str | None) -> list[str | None]:
    if preset != "cleanpatrick":
        if issue is not None:
            raise UsageError("--issue works only with --preset cleanpatrick")
        return [None]
    if issue is not None:
        return [issue]
    from softgold.simulation import CLEANPATRICK_ISSUES

    return list(CLEANPATRICK_ISSUES)


def _changed_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the given settings, with lists parsed."""
    from softgold.simulation import SETTING_NAMES

    names = set(SETTING_NAMES) - {"issue"}
    settings = {name: value for name, value in given.items() if name in names and value is not None}
    for name in ("expert_errors", "model_aurocs", "model_ambiguity"):
        if name in settings:
            settings[name] = _numbers(settings[name], f"--{name.replace('_', '-')}")
    if settings.get("model_aurocs") == () and "model_ambiguity" not in settings:
        settings["model_ambiguity"] = ()
    return settings


def _numbers(text: str, option: str) -> tuple[float, ...]:
    if text.strip().lower() == "none":
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} must be numbers separated by commas, or 'none'; got {text!r}") from None


def _write(
    output: Path,
    preset: Any,
    issues: list[str | None],
    settings: dict[str, Any],
    force: bool,
    advance: Callable[[int], None],
) -> list[dict[str, Any]]:
    """Simulate and write each issue; return their summaries."""
    from softgold import __version__
    from softgold.output import atomic_directory, write_json, write_table
    from softgold.simulation import simulate as draw

    summaries = []
    with atomic_directory(output, force=force, marker=MARKER) as folder:
        for issue in issues:
            study = draw(preset, issue=issue, **settings)
            place = folder if len(issues) == 1 else folder / str(issue)
            place.mkdir(exist_ok=True)
            for name, table in study.tables().items():
                write_table(table, place / f"{name}.csv")
            summaries.append(_summary(study))
            advance(1)
        write_json({"softgold": __version__, "preset": preset, "studies": summaries}, folder / MARKER)
    return summaries


def _summary(study: Simulation) -> dict[str, Any]:
    votes, truth = study.votes, study.truth
    return {
        "issue": study.settings.issue or None,
        "n_items": votes.n_items,
        "n_annotators": votes.n_annotators,
        "n_votes": votes.n_votes,
        "n_abstentions": votes.n_abstentions,
        "n_components": votes.components.count,
        "n_positive": int(truth.label.sum()),
        "n_adversarial": int((truth.kind == "adversarial").sum()),
        "n_random": int((truth.kind == "random").sum()),
        "n_experts": 0 if study.experts is None else len(study.experts.expert_ids),
        "n_expert_items": 0 if study.experts is None else len(study.experts.item_ids),
        "n_models": 0 if study.scores is None else len(study.scores.models),
        "settings": study.settings,
    }


def _sentence(summary: dict[str, Any]) -> str:
    name = f"{summary['issue']}: " if summary["issue"] else ""
    return (
        f"{name}{summary['n_votes']} votes by {summary['n_annotators']} annotators on {summary['n_items']} items, "
        f"{summary['n_positive']} positive; {summary['n_experts']} experts on {summary['n_expert_items']} "
        f"items; {summary['n_models']} models"
    )
