"""`softgold sample-experts`: which items to show to experts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from softgold.cli.common import AsJson, Force, Output, Quiet, Seed, print_json, say
from softgold.errors import UsageError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sample-experts")(sample_experts)


def sample_experts(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or a file with soft labels.")],
    output: Output,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="Where to keep the key; beside the sheet if left out."),
    ] = None,
    bins: Annotated[int, typer.Option(help="Number of bins of soft labels.")] = 20,
    per_bin: Annotated[int, typer.Option(help="Items to draw from each bin.")] = 20,
    scheme: Annotated[
        Literal["rank", "width"], typer.Option(help="Bins of equally many items, or of equal width.")
    ] = "rank",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw items for expert review.

    Writes a sheet with the columns item and label, without soft labels and in random order, of which every expert
    fills a copy with 0 and 1; and a key that the experts must not see, which `softgold calibrate --key` reads.
    """
    from softgold.experts.sampling import sample_for_experts
    from softgold.output import atomic_files, check_target, write_table
    from softgold.readers import read_soft_labels

    key = key or output.with_name(f"{output.name.split('.')[0]}.key{''.join(output.suffixes)}")
    if key.resolve() == output.resolve():
        raise UsageError("--key and --output must be two files: the experts must not see the key")
    for target in (output, key):
        check_target(target, force=force)
    soft_labels = read_soft_labels(run / "soft_labels.csv" if run.is_dir() else run)
    sample = sample_for_experts(soft_labels, bins=bins, per_bin=per_bin, scheme=scheme, seed=seed)
    with atomic_files([key, output], force=force) as (key_file, sheet_file):
        write_table(sample.key(), key_file)
        write_table(sample.sheet(), sheet_file)
    say(f"{len(sample):,} of {len(soft_labels):,} items for the experts: {output}", quiet=quiet)
    say(f"the key, not for the experts: {key}", quiet=quiet)
    if as_json:
        print_json({"sheet": output, "key": key, "n_items": len(sample), "per_bin": sample.sampled_per_bin})
