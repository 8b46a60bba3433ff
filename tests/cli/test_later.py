"""Commands after a fit of votes on disk: the same results as after a fit in memory, in little memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest

import softgold
from fixtures.parts import with_abstentions, with_repeats, write_parts
from softgold.errors import StorageError
from softgold.report.html import report_page
from softgold.runs import limits
from softgold.runs import stored as stored_votes
from softgold.runs.stored import StoredVotes

pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")

Runs = tuple[Path, Path]
FIT = ("--engine", "coordinate", "--duplicates", "mean")


def with_another_component(frame: pd.DataFrame) -> pd.DataFrame:
    """Abstentions, and votes on one more item by people who voted on no other."""
    others = frame.head(9).assign(item="x", annotator=[f"y{at}" for at in range(9)], vote="1")
    return pd.concat([with_abstentions(frame), others])


TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "averaged repeats": lambda frame: with_repeats(frame.assign(item=pd.factorize(frame["item"])[0] + 7)),
    "abstentions": with_another_component,
}


@pytest.fixture(params=TABLES)
def runs(request: Any, cli: Any, vote_frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The same votes fitted in memory and on disk, where they are read some rows at a time."""
    monkeypatch.setattr(stored_votes, "PART_VOTES", 70)
    rows = TABLES[request.param](vote_frame)
    rows.to_parquet(tmp_path / "votes.parquet", index=False)
    whole, streamed = tmp_path / "whole" / "run", tmp_path / "streamed" / "run"
    for run, source in ((whole, tmp_path / "votes.parquet"), (streamed, write_parts(rows, tmp_path / "votes"))):
        run.parent.mkdir()
        answer = cli("fit", source, "-o", run, *FIT)
        assert answer.code == 0, answer.err
    items = softgold.open_run(whole).soft_labels.item_ids
    answers = np.where(np.arange(len(items)) % 3 == 0, "yes", "no")
    pd.DataFrame({"item": items, "expert": "ann", "answer": answers})[::2].to_csv(tmp_path / "experts.csv", index=False)
    scores = np.random.default_rng(0).random((len(items), 2))
    pd.DataFrame({"item": items[::-1], "near": scores[:, 0], "far": scores[:, 1]}).to_csv(
        tmp_path / "scores.csv", index=False
    )
    return whole, streamed


def both(cli: Any, runs: Runs, *arguments: object) -> tuple[Any, Any]:
    """Run a command on both runs: the first argument is its name, RUN stands for the run."""
    answers = [cli(*(run if part == "RUN" else part for part in arguments)) for run in runs]
    assert [answer.code for answer in answers] == [0, 0], answers
    return answers[0], answers[1]


def in_words(value: object) -> str:
    """Return a value in words, without the rows that notes name, and of numbers those digits that are shown.

    Several files count their rows by themselves, and sums over other parts differ in the last digit.
    """
    return re.sub(r"\(first at [^)]*\)|order=[-+.0-9e]+", "", repr(value))


def records(runs: Runs, name: str) -> list[dict[str, Any]]:
    found = [json.loads((run / name).read_text()) for run in runs]
    return [{key: value for key, value in one.items() if key not in {"made_from", "files"}} for one in found]


@pytest.mark.slow
def test_calibration_and_evaluation_are_those_of_a_fit_in_memory(cli: Any, runs: Runs, tmp_path: Path) -> None:
    both(cli, runs, "calibrate", "RUN", "--experts", tmp_path / "experts.csv", "--n-bootstrap", 50)
    assert (runs[0] / "labels.csv").read_bytes() == (runs[1] / "labels.csv").read_bytes()
    assert json.dumps(records(runs, "calibration.json")[0]) == json.dumps(records(runs, "calibration.json")[1])
    for soft in ("p", "p_calibrated", "expected_vote"):
        draws = ("--n-bootstrap", 20, "--n-vote-bootstrap", 20)
        both(cli, runs, "evaluate", "RUN", "--scores", tmp_path / "scores.csv", "--soft", soft, "--force", *draws)
        assert (runs[0] / "metrics.csv").read_bytes() == (runs[1] / "metrics.csv").read_bytes()


@pytest.mark.slow
def test_plans_are_those_of_a_fit_in_memory(cli: Any, runs: Runs, tmp_path: Path) -> None:
    crew = softgold.open_run(runs[0]).annotators["annotator"].tolist()[:9]
    pd.DataFrame({"annotator": [*crew, "newcomer"], "capacity": 5}).to_csv(tmp_path / "crew.csv", index=False)
    asked: tuple[tuple[object, ...], ...] = (
        ("--budget", 12),
        ("--budget", 12, "--annotators", tmp_path / "crew.csv"),
        ("--budget", 3, "--controls", crew[0]),
        ("--forecast", "--target-error", 0.05),
    )
    for options in asked:
        tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
        for run, table in zip(runs, tables, strict=True):
            answer = cli("next", run, *options, "-o", table, "--force")
            assert answer.code == 0, answer.err
        mine, theirs = (pd.read_csv(table) for table in tables)
        pd.testing.assert_frame_equal(mine, theirs, rtol=1e-9)
    for run, sheet in zip(runs, ("c.csv", "d.csv"), strict=True):
        assert cli("sample-experts", run, "--budget", 20, "-o", tmp_path / sheet).code == 0
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "d.csv").read_bytes()


@pytest.mark.slow
def test_the_report_is_that_of_a_fit_in_memory(cli: Any, runs: Runs, tmp_path: Path) -> None:
    both(cli, runs, "calibrate", "RUN", "--experts", tmp_path / "experts.csv", "--n-bootstrap", 50)
    both(cli, runs, "report", "RUN")
    mine, theirs = (report_page(softgold.open_run(run)) for run in runs)
    assert (mine.lead, mine.tiles) == (theirs.lead, theirs.tiles)
    for one, other in zip(mine.sections, theirs.sections, strict=True):
        if one.key != "fit":  # which has the seconds that it took
            assert in_words(one) == in_words(other)


def test_votes_in_parts_are_those_of_the_table(runs: Runs) -> None:
    table, parts = (softgold.open_run(run).votes_in_parts for run in runs)
    assert isinstance(parts, StoredVotes)
    assert in_words(parts.describe()) == in_words(table.describe())
    pieces = list(parts.each())
    assert [part.first_item for part, _ in pieces] == np.cumsum([0, *(part.n_items for part, _ in pieces)]).tolist()[
        :-1
    ]
    assert len(pieces) > 2
    assert sum(len(votes.votes) for _, votes in pieces) == parts.n_votes == table.n_votes


def test_ids_in_several_pieces_of_memory(cli: Any, vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    """A large table of soft labels is read in pieces, which do not end where the parts of the votes do."""
    run = tmp_path / "run"
    assert cli("fit", write_parts(vote_frame, tmp_path / "votes"), "-o", run, *FIT).code == 0
    votes = softgold.open_run(run).votes_in_parts
    assert isinstance(votes, StoredVotes)
    texts = pa.array(votes.item_ids.array)
    pieces = pa.chunked_array([texts.slice(start, 11) for start in range(0, len(texts), 11)])
    ids = pd.Index(pd.arrays.ArrowStringArray(pieces))  # the type that pandas 3 gives any text
    assert isinstance(pa.array(ids.array), pa.ChunkedArray)
    assert sum(part.n_items for part, _ in replace(votes, item_ids=ids).each()) == votes.n_items


def test_votes_of_other_items_are_refused(cli: Any, vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert cli("fit", write_parts(vote_frame, tmp_path / "votes"), "-o", run, *FIT).code == 0
    rows = pd.read_parquet(run / "votes.parquet")
    broken = {
        "its items are not those": rows.assign(item="x" + rows["item"]),
        "votes on 119 items": rows[rows["item"] != rows["item"].iloc[-1]],
        "neither 0 nor 1": rows.assign(vote=2),
        "annotators that the fit does not know": rows.assign(annotator="x" + rows["annotator"]),
    }
    for words, table in broken.items():
        table.to_parquet(run / "votes.parquet", index=False)
        answer = cli("next", run, "--budget", 5)
        assert (answer.code, words in answer.err) == (2, True), answer.err
    (run / "votes.parquet").unlink()
    with pytest.raises(StorageError, match="fit the votes again"):
        next(softgold.open_run(run).votes_in_parts.each())


def test_a_run_too_large_for_the_machine_is_refused(
    cli: Any, vote_frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert cli("fit", write_parts(vote_frame, tmp_path / "votes"), "-o", run, *FIT).code == 0
    monkeypatch.setattr(limits, "machine_bytes", lambda: 10_000)
    (tmp_path / "experts.csv").write_text("item,answer\nx,yes\n")
    (tmp_path / "scores.csv").write_text("item,m\nx,1\n")
    asked: tuple[tuple[object, ...], ...] = (
        ("next", run, "--budget", 5),
        ("report", run),
        ("calibrate", run, "--experts", tmp_path / "experts.csv"),
        ("evaluate", run, "--scores", tmp_path / "scores.csv"),
        ("sample-experts", run, "-o", tmp_path / "sheet.csv"),
    )
    for arguments in asked:
        answer = cli(*arguments)
        assert answer.code == 2
        assert "needs about 0.0 GB of memory for 120 items, and this machine has 0.0 GB" in answer.err
    assert not (run / "report.html").exists()


# --- memory, in a process of its own ---

LARGE, VOTES_EACH = 300_000, 8
MEASURE = """
import sys
from pathlib import Path
from softgold.cli.app import main

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, large, name, *options = sys.argv[1:]
peaks = []
for run in (small, large):
    assert main([name, run, *options]) == 0
    peaks.append(peak())
print((peaks[1] - peaks[0]) * 1024)
"""


def enlarged(run: Path, target: Path) -> None:
    """Copy a run of votes on disk with its items repeated under other names."""
    target.mkdir()
    for name in ("annotators.csv", "posterior.npz", "run.json"):
        (target / name).write_bytes((run / name).read_bytes())
    soft = arrow_parquet.read_table(run / "soft_labels.parquet").to_pandas()
    soft = soft.iloc[np.resize(np.arange(len(soft)), LARGE)].assign(item=[f"item-{at:09d}" for at in range(LARGE)])
    soft.to_parquet(target / "soft_labels.parquet", index=False)
    votes = pd.read_parquet(run / "votes.parquet")
    counts = soft["n_votes"].to_numpy()
    annotators, said = (np.resize(votes[name].to_numpy(), counts.sum()) for name in ("annotator", "vote"))
    items = pa.array(soft["item"]).take(pa.array(np.repeat(np.arange(LARGE), counts)))
    arrow_parquet.write_table(
        pa.table({"item": items, "annotator": annotators, "vote": said}), target / "votes.parquet"
    )


@pytest.mark.slow
def test_memory_per_item_is_bounded(cli: Any, vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    """A run of 2,400,000 votes takes a few hundred bytes per item beyond what a small one takes."""
    small, large = tmp_path / "small", tmp_path / "large"
    assert cli("fit", write_parts(vote_frame, tmp_path / "votes"), "-o", small, *FIT).code == 0
    enlarged(small, large)
    code = [sys.executable, "-c", MEASURE, str(small), str(large)]
    found = subprocess.run([*code, "next", "--budget", "50", "--quiet"], capture_output=True, text=True, check=True)
    assert int(found.stdout.splitlines()[-1]) / LARGE < 900
