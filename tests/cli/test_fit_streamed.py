"""`softgold fit` of votes on disk: chosen or asked for, whole or not at all, and read by every later command."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softgold
from fixtures.parts import with_abstentions, write_parts
from softgold.errors import UsageError
from softgold.models.crowd.ascent import Ascent
from softgold.output.temporaries import temporary_sibling
from softgold.scale import plan as plans
from softgold.scale.plan import choose_plan, parse_size

FIT = ("--engine", "coordinate")


@pytest.fixture
def pattern(vote_frame: pd.DataFrame, tmp_path: Path) -> str:
    return write_parts(vote_frame, tmp_path / "votes")


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "votes")


def run_of(cli: Callable[..., Any], pattern: str, tmp_path: Path, *options: object) -> Path:
    answer = cli("fit", pattern, "-o", tmp_path / "run", *FIT, *options)
    assert answer.code == 0, answer.err
    return tmp_path / "run"


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_the_run_is_that_of_a_fit_in_memory(cli: Any, vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    rows = with_abstentions(vote_frame)
    answer = cli("fit", write_parts(rows, tmp_path / "votes"), "-o", tmp_path / "run", *FIT, "--memory", "1GB", "--csv")
    assert answer.code == 0, answer.err
    assert "votes stay on disk: about 960 in 3 files, fitted in about 1.0 GB of memory" in answer.err
    assert "1 item has no vote and is left out" in answer.err
    assert left_behind(tmp_path) == ["run"]
    run = softgold.open_run(tmp_path / "run")
    whole = softgold.fit(softgold.read_votes(rows), engine="coordinate")
    whole.save(tmp_path / "other")
    expected = softgold.open_run(tmp_path / "other")
    pd.testing.assert_frame_equal(run.soft_labels.to_frame(), expected.soft_labels.to_frame(), check_exact=True)
    assert (run.path / "soft_labels.csv").read_bytes() == (expected.path / "soft_labels.csv").read_bytes()
    pd.testing.assert_frame_equal(run.annotators, expected.annotators, check_exact=True)
    assert run.fit.votes.n_abstentions == whole.votes.n_abstentions
    assert run.problems() == ()
    mine, theirs = run.fit.posterior.to_arrays(), expected.fit.posterior.to_arrays()
    assert all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in theirs)
    assert run.fit.votes.annotator_ids.tolist() == run.fit.posterior.annotator_ids.tolist()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_later_commands_read_the_run(cli: Any, pattern: str, vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    run = run_of(cli, pattern, tmp_path)
    items = vote_frame["item"].unique()
    truth = pd.DataFrame({"item": items[:60], "label": (np.arange(60) % 3 == 0).astype(int)})
    truth.to_csv(tmp_path / "experts.csv", index=False)
    scores = pd.DataFrame({"item": items, "m": np.linspace(0, 1, len(items))})
    scores.to_csv(tmp_path / "scores.csv", index=False)
    assert cli("sample-experts", run, "--budget", 20, "-o", tmp_path / "sheet.csv").code == 0
    assert cli("calibrate", run, "--experts", tmp_path / "experts.csv").code == 0
    assert cli("evaluate", run, "--scores", tmp_path / "scores.csv").code == 0
    plan = cli("next", run, "--budget", 30)
    assert plan.code == 0
    assert cli("report", run).code == 0
    in_memory = tmp_path / "memory"
    softgold.fit(softgold.read_votes(vote_frame), engine="coordinate").save(in_memory)
    assert cli("next", in_memory, "--budget", 30).out == plan.out


def test_what_a_program_reads_is_the_same(cli: Any, pattern: str, vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    vote_frame.to_csv(tmp_path / "votes.csv", index=False)
    here = json.loads(cli("fit", pattern, "-o", tmp_path / "run", *FIT, "--json").out)
    there = json.loads(cli("fit", tmp_path / "votes.csv", "-o", tmp_path / "other", *FIT, "--json").out)
    for name in there.keys() - {"run", "seconds", "expected_wrong"}:
        assert here[name] == there[name], name
    assert here["expected_wrong"] == pytest.approx(there["expected_wrong"])


# --- which votes stay on disk ---


def test_small_files_are_read_into_memory_and_large_ones_are_not(
    vote_frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "votes.parquet"
    vote_frame.to_parquet(path)
    assert choose_plan(str(path)) is None
    assert choose_plan("-") is None
    monkeypatch.setattr(plans, "default_max_bytes", lambda: 960 * plans.BYTES_PER_VOTE - 1)
    found = choose_plan(str(path))
    assert found is not None
    assert (found.asked, found.votes) == (False, 960)
    monkeypatch.setattr(plans, "default_max_bytes", lambda: 10**12)
    write_parts(vote_frame, tmp_path / "folder")
    folder = choose_plan(str(tmp_path / "folder"))
    assert folder is not None
    assert folder.asked
    assert len(folder.files.paths) == 3


def test_sizes() -> None:
    assert parse_size("2GB") == 2 * 10**9
    assert parse_size("1.5gib") == 3 * 2**29
    for text in ("much", "2XB", "", "-1GB"):
        with pytest.raises(UsageError, match="must be a size such as 2GB"):
            parse_size(text)
    with pytest.raises(UsageError, match="must be at least 200MB, got '10MB'"):
        parse_size("10MB")


# --- bad input: a sentence, exit 2, nothing left behind ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("votes/none-*.parquet",), "no file matches"),
        (("votes/*.parquet", "--memory", "lots"), "--memory must be a size such as 2GB or 500MB, got 'lots'"),
        (("votes/*.parquet", "--wide"), "--wide reads votes into memory"),
        (("votes/*.parquet", "--samples", "10"), "--samples has no meaning for votes on disk"),
        (("votes/*.parquet", "--model", "majority", "--engine", ""), None),
        (("votes/*.parquet", "--item-col", "thing"), "votes-0.parquet has no column 'thing'"),
        (("-", "--memory", "1GB"), "--memory needs a file, a folder of tables or a pattern"),
    ],
)
def test_bad_arguments(
    cli: Any, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, message: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = cli("fit", *arguments, "-o", "run", *(() if "--engine" in arguments else FIT))
    assert answer.code == 2
    assert message is None or message in answer.err
    assert left_behind(tmp_path) == []


def test_a_damaged_file_is_named_and_nothing_stays(cli: Any, pattern: str, tmp_path: Path) -> None:
    damaged = tmp_path / "votes" / "votes-2.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    answer = cli("fit", pattern, "-o", tmp_path / "run", *FIT)
    assert answer.code == 2
    assert "votes-2.parquet cannot be read as Parquet" in answer.err
    assert left_behind(tmp_path) == []


def test_one_corrupt_file_of_a_hundred_is_named_and_nothing_stays(
    cli: Any, vote_frame: pd.DataFrame, tmp_path: Path
) -> None:
    pattern = write_parts(vote_frame, tmp_path / "votes", count=100)
    corrupt = tmp_path / "votes" / "votes-57.parquet"
    content = corrupt.read_bytes()  # of which the footer stays whole
    corrupt.write_bytes(content[:4] + bytes(len(content) // 4) + content[4 + len(content) // 4 :])
    answer = cli("fit", pattern, "-o", tmp_path / "run", *FIT)
    assert answer.code == 2
    assert "votes-57.parquet cannot be read as Parquet" in answer.err
    assert left_behind(tmp_path) == []


def test_a_file_with_other_columns_is_named_and_nothing_stays(
    cli: Any, vote_frame: pd.DataFrame, pattern: str, tmp_path: Path
) -> None:
    vote_frame.rename(columns={"vote": "colour"}).to_parquet(tmp_path / "votes" / "votes-1.parquet", index=False)
    answer = cli("fit", pattern, "-o", tmp_path / "run", *FIT)
    assert answer.code == 2
    assert "votes-1.parquet has the columns 'item', 'annotator', 'colour', and not those of" in answer.err
    assert left_behind(tmp_path) == []


def start(pattern: str, tmp_path: Path, *options: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "softgold", "fit", pattern, "-o", str(tmp_path / "run"), *FIT, *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **more)


@pytest.mark.slow
def test_a_full_disk_is_said_and_nothing_stays(vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    pattern = write_parts(vote_frame, tmp_path / "votes")
    limit = (2000, 2000)  # bytes of a file: what a full disk looks like to the one who writes
    process = start(pattern, tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    _, err = process.communicate()
    assert process.returncode == 2
    assert "cannot write" in err
    assert "Traceback" not in err
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_an_interrupted_fit_goes_on_to_the_same_run(
    cli: Any, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Ascent.on_sweep

    def interrupted(self: Ascent, state: Any) -> None:
        report(self, state)
        if state.sweep == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ascent, "on_sweep", interrupted)
        answer = cli("fit", pattern, "-o", tmp_path / "run", *FIT)
    assert answer.code == 130
    assert "go on with the same command and --resume" in answer.err
    assert left_behind(tmp_path) == ["run.checkpoint.npz"]
    assert cli("fit", pattern, "-o", tmp_path / "run", *FIT, "--resume").code == 0
    assert left_behind(tmp_path) == ["run"]
    assert cli("fit", pattern, "-o", tmp_path / "other", *FIT).code == 0
    resumed, whole = (softgold.open_run(tmp_path / name).soft_labels.p for name in ("run", "other"))
    assert np.array_equal(resumed, whole)


def test_what_a_killed_process_left_is_removed(cli: Any, pattern: str, tmp_path: Path) -> None:
    with temporary_sibling(tmp_path / "run.votes") as path:
        dead = path.with_name(path.name.replace(f"-{os.getpid()}-", "-999999999-"))
    dead.mkdir()
    (dead / "part-0.vote").write_bytes(b"0")
    run_of(cli, pattern, tmp_path)
    assert left_behind(tmp_path) == ["run"]
