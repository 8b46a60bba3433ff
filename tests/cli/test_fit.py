"""`softgold fit`."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fixtures.tables import NEEDS_A_RULE, REAL_TABLES
from softgold.models.base import fit
from softgold.readers import read_votes
from softgold.runs import open_run, votes_digest
from softgold.runs.files import read_arrays
from softgold.simulation import simulate
from softgold.tables.soft_labels import COLUMNS

FILES = ["annotators.csv", "posterior.npz", "run.json", "soft_labels.csv", "votes.parquet"]

# The command line with sweeps or steps that take their time and a checkpoint after each of them. Torch takes seconds
# to import, and the coordinate engine does without; svi begins with sweeps, which need not take long.
SLOW = """
import sys, time
import softgold.cli.fit as command

if "coordinate" in sys.argv:
    from softgold.models.crowd import coordinate

    def slow_sweep(*arguments, sweep=coordinate.sweep):
        time.sleep(0.25)
        return sweep(*arguments)

    coordinate.sweep = slow_sweep
else:
    from softgold.models.crowd import published, svi

    class SlowOptimiser(svi.Optimiser):
        def step(self, *arguments):
            time.sleep(0.05)
            super().step(*arguments)

    svi.Optimiser, published.Optimiser = SlowOptimiser, SlowOptimiser

command.CHECKPOINT_SECONDS = 0
from softgold.cli import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return simulate(n_items=120, n_annotators=15, votes_per_item=5, seed=6).votes.to_frame()


@pytest.fixture
def votes(tmp_path: Path, frame: pd.DataFrame) -> Path:
    path = tmp_path / "votes.csv"
    frame.to_csv(path, index=False)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_directory(cli: Callable[..., Any], votes: Path, tmp_path: Path, frame: pd.DataFrame) -> None:
    answer = cli("fit", votes, "-o", tmp_path / "run", "--engine", "coordinate")
    assert (answer.code, answer.out) == (0, "")
    assert "model: two-class (coordinate)\ndata: 600 votes on 120 items by 15 annotators\n" in answer.err
    assert f"written: {tmp_path / 'run'}" in answer.err
    assert names(tmp_path) == ["run", "votes.csv"]
    assert names(tmp_path / "run") == FILES
    labels = pd.read_csv(tmp_path / "run" / "soft_labels.csv")
    assert tuple(labels.columns) == COLUMNS
    expected = fit(frame, engine="coordinate").posterior
    assert labels["p"].to_numpy() == pytest.approx(expected.soft_labels().p, rel=1e-14)
    assert np.array_equal(open_run(tmp_path / "run").fit.posterior.soft_labels().p, expected.soft_labels().p)
    assert votes_digest(open_run(tmp_path / "run").votes) == votes_digest(read_votes(frame))
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["input"]["source"] == str(votes)


@pytest.mark.slow
def test_the_default_engine_is_svi(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        answer = cli("fit", votes, "-o", tmp_path / name, "--seed", 5, "--max-steps", 50)
        assert answer.code == 0
        assert "model: two-class (svi)\n" in answer.err
    for name in FILES:
        if name != "run.json":
            assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert open_run(tmp_path / "first").fit.settings.seed == 5


def test_json(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    answer = cli("fit", votes, "-o", tmp_path / "run", "--engine", "coordinate", "--json")
    assert (answer.code, answer.err) == (0, "")
    said = json.loads(answer.out)
    fitted = open_run(tmp_path / "run").fit
    assert said["run"] == str(tmp_path / "run")
    assert (said["items"], said["annotators"], said["votes"], said["components"]) == (120, 15, 600, 1)
    assert said["converged"] is True
    assert said["elbo"] == fitted.diagnostics.elbo[-1]
    assert said["learned"] == fitted.diagnostics.learned
    assert said["positives"] == int((fitted.posterior.soft_labels().p >= 0.5).sum())
    assert said["warnings"] == []


def test_quiet(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    answer = cli("fit", votes, "-o", tmp_path / "run", "--engine", "coordinate", "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_samples(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    answer = cli("fit", votes, "-o", tmp_path / "run", "--engine", "coordinate", "--samples", 100, "--seed", 3)
    assert answer.code == 0
    p = pd.read_csv(tmp_path / "run" / "soft_labels.csv")["p"].to_numpy()
    assert np.array_equal(p, open_run(tmp_path / "run").fit.posterior.sample_soft_labels(100, seed=3).p)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["samples"] == 100


GLAD = ["--model", "glad"]


def learned(run: Path, name: str) -> float:
    values = open_run(run).fit.diagnostics.learned
    assert values is not None
    return values[name]


@pytest.mark.slow
def test_priors(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    assert cli("fit", votes, "-o", tmp_path / "a", *GLAD, "--engine", "coordinate", "--prior", "paper").code == 0
    assert learned(tmp_path / "a", "difficulty_scale") == 1000.0
    options = ["--ability-mean", "0.5", "--ability-scale", "2", "--difficulty-scale", "1.5"]
    assert cli("fit", votes, "-o", tmp_path / "b", *GLAD, "--engine", "coordinate", *options).code == 0
    settings = open_run(tmp_path / "b").fit.settings
    assert (settings.ability_mean, settings.ability_scale, settings.difficulty_scale) == (0.5, 2.0, 1.5)


@pytest.mark.parametrize("model", ["two-class", "glad", "majority", "mean"])
def test_every_model_from_votes_to_report(cli: Callable[..., Any], votes: Path, tmp_path: Path, model: str) -> None:
    options = ["--engine", "coordinate"] if model in {"two-class", "glad"} else []
    run = tmp_path / "run"
    assert cli("fit", votes, "-o", run, "--model", model, *options).code == 0
    assert open_run(run).fit.model == model
    answer = cli("predict", run, votes)
    assert answer.code == 0
    p = pd.read_csv(io.StringIO(answer.out))["p"].to_numpy()
    assert np.array_equal(p, pd.read_csv(run / "soft_labels.csv")["p"].to_numpy())
    assert cli("report", run).code == 0


def test_the_prevalence_can_be_given(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    for value, name in (("0.2", "number"), ("share", "share")):
        options = ["--engine", "coordinate", "--prevalence", value]
        assert cli("fit", votes, "-o", tmp_path / name, *options).code == 0
    p = open_run(tmp_path / "number").fit.posterior.soft_labels().p
    assert p.mean() == pytest.approx(0.2, abs=2e-3)
    table = read_votes(votes)
    target = (table.item_shares.sum() + 1) / (table.n_items + 2)
    assert open_run(tmp_path / "share").fit.posterior.soft_labels().p.mean() == pytest.approx(target, abs=2e-3)


def test_a_fit_that_hits_the_cap_warns(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    answer = cli("fit", votes, "-o", tmp_path / "run", "--engine", "coordinate", "--max-steps", 2, "--quiet")
    assert answer.code == 0
    assert answer.err.startswith("warning: not converged: the cap on sweeps was reached (2); raise max_steps")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["diagnostics"]["converged"] is False


@pytest.mark.slow
def test_an_existing_run_needs_force(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ["fit", votes, "-o", run, "--engine", "coordinate"]
    assert cli(*command).code == 0
    before = (run / "run.json").read_bytes()
    refused = cli(*command, *GLAD, "--prior", "paper")
    assert refused.code == 2
    assert "exists already; give --force" in refused.err
    assert (run / "run.json").read_bytes() == before
    assert cli(*command, *GLAD, "--prior", "paper", "--force").code == 0
    assert learned(run, "difficulty_scale") == 1000.0
    assert names(tmp_path) == ["run", "votes.csv"]


def test_a_folder_that_is_not_a_run_is_not_replaced(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    answer = cli("fit", votes, "-o", mine, "--engine", "coordinate", "--force")
    assert answer.code == 2
    assert (mine / "thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_the_working_directory_as_the_run(
    cli: Callable[..., Any], votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert cli("fit", votes, "-o", run, "--engine", "coordinate").code == 0
    monkeypatch.chdir(run)
    answer = cli("fit", votes, "-o", ".", *GLAD, "--engine", "coordinate", "--prior", "paper", "--force")
    assert (answer.code, answer.out) == (0, "")
    assert learned(run, "difficulty_scale") == 1000.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-steps", "0"], "max_steps must be a whole number of at least 1, got 0"),
        (["--max-steps", "many"], "Invalid value for '--max-steps'"),
        ([*GLAD, "--difficulty-scale", "-1"], "difficulty_scale must be a number from 1e-09 to 1e+09, got -1.0"),
        ([*GLAD, "--ability-scale", "0"], "ability_scale must be a number from 1e-09 to 1e+09, got 0.0"),
        ([*GLAD, "--ability-scale", "nan"], "ability_scale must be a number from 1e-09 to 1e+09, got nan"),
        ([*GLAD, "--ability-mean", "inf"], "ability_mean must be a number from -1e+09 to 1e+09, got inf"),
        ([*GLAD, "--difficulty-scale", "1e9"], "must be at most 100000"),
        (["--engine", "em"], "'em' is not one of 'svi', 'coordinate'"),
        (["--prior", "vague"], "'vague' is not one of 'default', 'paper'"),
        ([*GLAD, "--engine", "coordinate", "--init", "paper"], "init='paper' has no meaning for the coordinate engine"),
        (["--engine", "coordinate", "--batch-items", "5"], "batch_items=5 has no meaning for the coordinate engine"),
        (["--engine", "coordinate", "--device", "cuda"], "device='cuda' has no meaning for the coordinate engine"),
        ([*GLAD, "--init", "paper", "--batch-items", "5"], "the published recipe (init='paper') has no batches"),
        (["--model", "em"], "model must be one of two-class, glad, majority, mean; got 'em'"),
        (["--prior", "paper"], "prior has no meaning for the model two-class"),
        (["--prior", "paper"], "and prior belongs to glad"),
        ([*GLAD, "--prevalence", "0.3"], "prevalence has no meaning for the model glad"),
        (["--prevalence", "1.5"], "prevalence must lie in (0.0, 1.0), got 1.5"),
        (["--prevalence", "most"], "prevalence must be able, share, majority or a number between 0 and 1"),
        (["--model", "mean", "--engine", "svi"], "engine has no meaning for the model mean"),
        (["--batch-items", "0"], "batch_items must be a whole number of at least 1, got 0"),
        (["--samples", "0"], "--samples must be a whole number of at least 1, got 0"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--device", "banana"], "device must be cpu or cuda, got 'banana'"),
        (["--resume"], "there is no checkpoint"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(cli: Callable[..., Any], votes: Path, tmp_path: Path, options: list[str], said: str) -> None:
    answer = cli("fit", votes, "-o", tmp_path / "run", *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert names(tmp_path) == ["votes.csv"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item,annotator,vote\n", "has a header and no rows"),
        ("item,annotator,vote\nx,a,\ny,a,\n", "has no votes"),
        ("item,annotator,vote\nx,a,1\ny,a,2\n", "row 2 (line 3), column 'vote'"),
        ("item,annotator,vote\nx,a,1\nx,a,0\n", "--duplicates first, last, mean or all"),
        ("item,vote\nx,1\n", "has no annotator column"),
    ],
    ids=["no rows", "abstentions", "three classes", "conflict", "no annotators"],
)
def test_bad_tables(cli: Callable[..., Any], tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    answer = cli("fit", path, "-o", tmp_path / "run")
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert names(tmp_path) == ["votes.csv"]


def test_the_target_is_checked_before_the_votes_are_read(cli: Callable[..., Any], tmp_path: Path) -> None:
    answer = cli("fit", tmp_path / "missing.csv", "-o", tmp_path / "no" / "such" / "run")
    assert answer.code == 2
    assert "does not exist" in answer.err
    assert "missing.csv" not in answer.err


def test_one_vote_is_a_result_with_warnings(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,vote\nx,a,1\n")
    answer = cli("fit", path, "-o", tmp_path / "run", "--engine", "coordinate", "--json")
    assert answer.code == 0
    assert answer.err.count("warning: ") == 2
    assert len(json.loads(answer.out)["warnings"]) == 2


def test_readers_options(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("photo,a,b,c\nx,1,1,1\ny,0,,0\nz,1,1,0\n")
    answer = cli("fit", path, "-o", tmp_path / "run", "--wide", "--item-col", "photo", "--engine", "coordinate")
    assert answer.code == 0
    assert open_run(tmp_path / "run").fit.posterior.soft_labels().n_votes.tolist() == [3, 2, 3]


# --- interruptions ---


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SLOW, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.02)


def assert_same_files(run: Path, other: Path) -> None:
    for name in FILES:
        if name != "run.json":  # it has the timings
            assert (run / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.slow
def test_an_interrupted_fit_can_be_resumed(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    run, checkpoint = tmp_path / "run", tmp_path / "run.checkpoint.npz"
    command = ["fit", votes, "-o", run, *GLAD, "--engine", "coordinate"]
    with running(*command) as process:
        wait_for(checkpoint, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert f"checkpoint: {checkpoint}\ngo on with the same command and --resume\n" in err
    assert "Traceback" not in err
    assert names(tmp_path) == ["run.checkpoint.npz", "votes.csv"]
    assert 1 <= int(read_arrays(checkpoint)["sweep"]) < 15

    other = cli("fit", votes, "-o", run, *GLAD, "--engine", "coordinate", "--prior", "paper", "--resume")
    assert other.code == 2
    assert "belongs to other votes or other settings" in other.err
    assert cli(*command, "--resume").code == 0
    assert names(tmp_path) == ["run", "votes.csv"]
    assert cli("fit", votes, "-o", tmp_path / "whole", *command[4:]).code == 0
    assert_same_files(run, tmp_path / "whole")


@pytest.mark.slow
def test_an_interruption_leaves_an_existing_run_alone_and_says_so_below_the_bar(
    cli: Callable[..., Any], votes: Path, tmp_path: Path
) -> None:
    run, checkpoint = tmp_path / "run", tmp_path / "run.checkpoint.npz"
    assert cli("fit", votes, "-o", run, "--engine", "coordinate").code == 0
    before = {name: (run / name).read_bytes() for name in FILES}
    arguments = ["fit", str(votes), "-o", str(run), *GLAD, "--engine", "coordinate", "--force"]
    command = [sys.executable, "-c", SLOW, *arguments]
    screen, terminal = os.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the terminal is closed
            while part := os.read(screen, 4096):
                shown.append(part)

    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        wait_for(checkpoint, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        reader.join(timeout=60)
        os.close(screen)
    text = b"".join(shown).decode()
    assert "sweep" in text
    after_the_bar = text.rpartition("\x1b[2K")[2]
    assert f"checkpoint: {checkpoint}" in after_the_bar.replace("\r\n", "")
    assert "go on with the same command and --resume" in after_the_bar
    assert {name: (run / name).read_bytes() for name in names(run)} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "number"),
    [([], signal.SIGINT), ([*GLAD, "--init", "paper"], signal.SIGTERM)],
    ids=["svi, interrupted", "published, terminated"],
)
def test_an_svi_fit_can_be_resumed(
    cli: Callable[..., Any], votes: Path, tmp_path: Path, options: list[str], number: int
) -> None:
    run, checkpoint = tmp_path / "run", tmp_path / "run.checkpoint.npz"
    command = ["fit", votes, "-o", run, *options, "--max-steps", "60"]
    with running(*command) as process:
        wait_for(checkpoint, process)
        while "random" not in read_arrays(checkpoint):  # still sweeping
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"checkpoint: {checkpoint}\ngo on with the same command and --resume\n" in err
    assert names(tmp_path) == ["run.checkpoint.npz", "votes.csv"]
    assert 1 <= len(read_arrays(checkpoint)["elbo"]) < 60

    assert cli(*command, "--resume").code == 0
    assert names(tmp_path) == ["run", "votes.csv"]
    assert cli("fit", votes, "-o", tmp_path / "whole", *command[4:]).code == 0
    assert_same_files(run, tmp_path / "whole")


@pytest.mark.slow
def test_a_killed_fit_leaves_the_old_run_and_can_be_resumed(
    cli: Callable[..., Any], votes: Path, tmp_path: Path
) -> None:
    run, checkpoint = tmp_path / "run", tmp_path / "run.checkpoint.npz"
    assert cli("fit", votes, "-o", run, "--engine", "coordinate").code == 0
    before = {name: (run / name).read_bytes() for name in FILES}
    command = ["fit", votes, "-o", run, *GLAD, "--engine", "coordinate", "--force"]
    with running(*command) as process:
        wait_for(checkpoint, process)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert {name: (run / name).read_bytes() for name in names(run)} == before
    assert cli(*command, "--resume").code == 0
    assert not checkpoint.exists()
    expected = fit(votes, model="glad", engine="coordinate").posterior.soft_labels().p
    assert np.array_equal(open_run(run).fit.posterior.soft_labels().p, expected)


def test_a_damaged_checkpoint_is_said(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    (tmp_path / "run.checkpoint.npz").write_bytes(b"PK\x03\x04 not a checkpoint")
    answer = cli("fit", votes, "-o", tmp_path / "run", "--engine", "coordinate", "--resume")
    assert (answer.code, answer.out) == (2, "")
    assert "run.checkpoint.npz is damaged or not ours" in answer.err
    assert names(tmp_path) == ["run.checkpoint.npz", "votes.csv"]


# --- real tables ---


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL_TABLES)
def test_real_tables(cli: Callable[..., Any], real_data: Path, tmp_path: Path, name: str) -> None:
    path = real_data / name / "votes.csv"
    repeats = ["--duplicates", "all"] if name in NEEDS_A_RULE else []
    answer = cli("fit", path, "-o", tmp_path / "run", "--engine", "coordinate", "--json", *repeats)
    assert answer.code == 0
    said = json.loads(answer.out)
    assert said["converged"] is True
    assert said["items"] == pd.read_csv(path)["item"].nunique()
    labels = pd.read_csv(tmp_path / "run" / "soft_labels.csv", dtype={"item": "str"})
    assert labels["p"].between(0, 1).all()
    assert not labels.drop(columns="majority").isna().any().any()
    truth = pd.read_csv(real_data / name / "truth.csv", dtype={"item": "str"}).set_index("item")
    column = "label" if "label" in truth else truth.columns[0]
    known = labels[labels["item"].isin(truth.index)]
    right = (known["p"] >= 0.5).to_numpy() == truth.loc[known["item"], column].to_numpy().astype(bool)
    assert right.mean() > 0.5  # upright
