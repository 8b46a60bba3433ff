"""A fit on a Dask cluster has the bits of a fit in memory, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softgold
from softgold.errors import DataWarning, InputError, UsageError
from softgold.models.base import Progress
from softgold.models.crowd import sums
from softgold.models.crowd.chunks import CHUNK_VOTES
from softgold.simulation import simulate

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

import softgold.dask as sgd  # noqa: E402
from softgold.scale import cluster as cluster_module  # noqa: E402
from softgold.scale import grouping  # noqa: E402

Same = Callable[[Any, Any], None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:not converged"),  # where sweeps are cut short to save time
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two worker processes of one thread each; their client is not the default one, so that none is needed."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local, set_as_default=False) as made,
    ):
        yield made


def test_workers_that_are_being_started_are_closed_after_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Starting:
        def __init__(self, **_: Any) -> None:
            signal.raise_signal(signal.SIGTERM)
            seen.append("started")

        def __enter__(self) -> Starting:
            return self

        def __exit__(self, *_: object) -> None:
            seen.append("closed")

    def stop(*_: object) -> None:
        raise SystemExit(143)

    monkeypatch.setattr(distributed, "LocalCluster", Starting)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(SystemExit), cluster_module.connect("local"):
            seen.append("connected")
        assert seen == ["started", "closed"]
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Votes with two crowds that never meet, in no order."""
    parts = []
    for seed in (1, 2):
        votes = simulate(n_items=300, n_annotators=12, seed=seed).votes.to_frame()
        parts.append(votes.assign(item=f"{seed}-" + votes["item"], annotator=f"{seed}-" + votes["annotator"]))
    return pd.concat(parts).sample(frac=1, random_state=0).reset_index(drop=True)


def in_memory(votes: Any, **options: Any) -> softgold.Fit:
    return softgold.fit(softgold.read_votes(votes), engine="coordinate", **options)


@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_bits_are_those_of_a_fit_in_memory(
    client: Any, frame: pd.DataFrame, model: str, assert_same_posterior: Same
) -> None:
    expected = in_memory(frame, model=model)
    found = sgd.fit(dd.from_pandas(frame, npartitions=5), client, model=model)
    local = found.to_local()
    assert_same_posterior(local.posterior, expected.posterior)
    pd.testing.assert_frame_equal(local.votes.to_frame(), expected.votes.to_frame())
    pd.testing.assert_frame_equal(found.annotators(), expected.posterior.annotators())
    assert found.diagnostics.elbo == expected.diagnostics.elbo
    assert found.diagnostics.components == expected.diagnostics.components


def test_soft_labels_are_a_dask_frame(client: Any, frame: pd.DataFrame) -> None:
    expected = in_memory(frame, max_steps=3).posterior.soft_labels().to_frame()
    found = sgd.fit(dd.from_pandas(frame, npartitions=3), client, max_steps=3).soft_labels()
    assert hasattr(found, "npartitions")
    together = client.compute(found).result().set_index("item").loc[expected["item"]].reset_index()
    together["item"] = together["item"].astype(expected["item"].dtype)  # with pandas 2, Dask has a text type of its own
    pd.testing.assert_frame_equal(together, expected, check_exact=True)


def test_groups_of_chunks_are_added_in_one_order(
    client: Any, monkeypatch: pytest.MonkeyPatch, assert_same_posterior: Same
) -> None:
    for module in (sums, grouping):
        monkeypatch.setattr(module, "GROUP_CHUNKS", 1)
    votes = simulate(n_items=30_000, n_annotators=60, seed=3).votes.to_frame()
    assert len(votes) > sums.FAN * CHUNK_VOTES
    expected = in_memory(votes, max_steps=3)
    found = sgd.fit(dd.from_pandas(votes, npartitions=4), client, max_steps=3)
    assert_same_posterior(found.to_local().posterior, expected.posterior)


def test_items_that_are_alike_are_fitted_once(client: Any, assert_same_posterior: Same) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=500)
    said = np.where(rng.random((500, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    items, who = np.nonzero(rng.random((500, 4)) < 0.9)
    votes = pd.DataFrame({"item": items, "annotator": who, "vote": said[items, who]})
    expected = in_memory(votes, max_steps=5)
    found = sgd.fit(dd.from_pandas(votes, npartitions=3), client, max_steps=5).to_local()
    assert_same_posterior(found.posterior, expected.posterior)
    assert found.votes.to_frame()["item"].dtype == expected.votes.to_frame()["item"].dtype


MESSY = pd.DataFrame(
    {
        "item": ["x", "y", "x", "z", "y", "x", "w", "y", "z"],
        "annotator": ["ann", "bob", "bob", "eve", "ann", "ann", "eve", "cat", "bob"],
        "vote": ["yes", "no", "no", "", "yes", "yes", "", "yes", "no"],
    }
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_are_read_and_cleaned_as_in_memory(client: Any, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"votes.{suffix}"
    if suffix == "csv":
        MESSY.to_csv(path, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(MESSY), path, row_group_size=4)
    with pytest.warns(DataWarning) as expected_warnings:
        expected = in_memory(path, max_steps=3)
    with pytest.warns(DataWarning) as warnings_:
        found = sgd.fit(path, client, max_steps=3).to_local()
    assert [str(one.message) for one in warnings_] == [str(one.message) for one in expected_warnings]
    for name in ("n_abstentions", "abstained_items", "abstained_annotators", "notes"):
        assert getattr(found.votes, name) == getattr(expected.votes, name)
    pd.testing.assert_frame_equal(found.votes.to_frame(), expected.votes.to_frame())
    assert found.posterior.soft_labels().p.tolist() == expected.posterior.soft_labels().p.tolist()


@pytest.mark.parametrize("rule", ["first", "last", "mean", "all"])
def test_repeats_are_resolved_as_in_memory(client: Any, tmp_path: Path, rule: Any, frame: pd.DataFrame) -> None:
    again = frame.iloc[:300].assign(vote=1 - frame["vote"].iloc[:300])
    path = tmp_path / "votes.csv"
    pd.concat([frame, again, frame.iloc[:50]]).to_csv(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        expected = softgold.fit(softgold.read_votes(path, duplicates=rule), engine="coordinate", max_steps=3)
        found = sgd.fit(path, client, duplicates=rule, max_steps=3).to_local()
    assert found.votes.notes == expected.votes.notes
    assert found.posterior.soft_labels().p.tolist() == expected.posterior.soft_labels().p.tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["x,ann,1", "x,bob,0", "y,ann,0", "x,ann,0"],
        ["x,ann,1", "x,bob,2"],
        ["x,ann,1", ",bob,0"],
        ["x,ann,", "y,bob,"],
        ["x,ann,1", "y,bob"],
    ],
)
def test_bad_input_has_the_message_of_a_fit_in_memory(client: Any, tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["item,annotator,vote", *cells]) + "\n")
    with pytest.raises(InputError) as expected:
        softgold.read_votes(path)
    with pytest.raises(InputError) as found:
        sgd.fit(path, client)
    assert str(found.value) == str(expected.value)


def test_a_bad_row_of_a_frame_names_its_partition(client: Any, frame: pd.DataFrame) -> None:
    bad = frame.assign(vote=frame["vote"].astype("str"))
    bad.loc[len(bad) - 1, "vote"] = "perhaps"
    with pytest.raises(InputError, match=r"partition 3 of the data frame, row \d+, column 'vote'.*'perhaps'"):
        sgd.fit(dd.from_pandas(bad, npartitions=3), client)


def test_one_corrupt_file_of_many_is_named(client: Any, tmp_path: Path, frame: pd.DataFrame) -> None:
    for number in range(4):
        frame.iloc[number::4].to_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(InputError, match=r"2\.parquet cannot be read as Parquet"):
        sgd.fit(str(tmp_path / "*.parquet"), client)


def test_the_positive_value_may_be_in_one_file_only(client: Any, tmp_path: Path) -> None:
    votes = pd.DataFrame({"item": list("xyxyz"), "annotator": list("aabbb"), "vote": ["cat", "dog", "dog", "cow", ""]})
    for number, rows in enumerate((votes.iloc[:1], votes.iloc[1:])):
        rows.to_csv(tmp_path / f"{number}.csv", index=False)
    with pytest.warns(DataWarning):
        found = sgd.fit(str(tmp_path / "*.csv"), client, positive="cat", max_steps=3).to_local()
    assert found.votes.votes.tolist() == [1, 0, 0, 0]
    with pytest.raises(InputError, match="no vote is 'horse'"):
        sgd.fit(str(tmp_path / "*.csv"), client, positive="horse")


def test_what_a_cluster_does_not_do_is_refused(client: Any, frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="svi"):
        sgd.fit(dd.from_pandas(frame, npartitions=1), client, engine="svi")
    with pytest.raises(UsageError, match="majority"):
        sgd.fit(dd.from_pandas(frame, npartitions=1), client, model="majority")
    with pytest.raises(UsageError, match="DataFrame"):
        sgd.fit(frame, client)
    with pytest.raises(InputError, match="no file matches"):
        sgd.fit(str(tmp_path / "*.parquet"), client)


def test_without_dask_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'softgold\[dask\]'"):
        sgd.fit("votes.csv")


def test_command_writes_the_run_of_a_fit_in_memory(client: Any, cli: Any, tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "votes.csv"
    frame.to_csv(path, index=False)
    assert cli("fit", path, "-o", tmp_path / "memory", "--engine", "coordinate").code == 0
    answer = cli("fit", path, "-o", tmp_path / "cluster", "--dask", client.scheduler.address)
    assert answer.code == 0, answer.err
    for name in ("soft_labels.csv", "annotators.csv"):
        assert (tmp_path / "cluster" / name).read_bytes() == (tmp_path / "memory" / name).read_bytes()


def command(*words: Any) -> subprocess.Popen[str]:
    """Start softgold in a process group of its own, as a terminal does, also from a shell's job that ignores Ctrl-C."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    program = ["env", "--default-signal=INT", sys.executable, "-m", "softgold", *map(str, words)]
    return subprocess.Popen(program, start_new_session=True, **pipes)


def workers_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def works(pid: int) -> bool:
    """Return whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_local_workers_write_the_run_of_a_fit_in_memory(cli: Any, tmp_path: Path, frame: pd.DataFrame) -> None:
    (tmp_path / "votes").mkdir()
    for number in range(3):
        frame.iloc[number::3].to_parquet(tmp_path / "votes" / f"{number}.parquet")
    pd.concat([frame.iloc[number::3] for number in range(3)]).to_csv(tmp_path / "votes.csv", index=False)
    assert cli("fit", tmp_path / "votes.csv", "-o", tmp_path / "memory", "--engine", "coordinate").code == 0
    with command("fit", tmp_path / "votes", "-o", tmp_path / "run", "--dask", "local", "--quiet") as process:
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    for name in ("soft_labels.csv", "annotators.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "memory" / name).read_bytes()


def test_an_interrupt_ends_local_workers_without_a_word_from_them(tmp_path: Path) -> None:
    simulate(n_items=30_000, n_annotators=50, seed=1).votes.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    with command("fit", tmp_path / "votes.csv", "-o", tmp_path / "run", "--dask", "local") as process:
        while process.poll() is None and len(children := workers_of(process.pid)) < 2:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "interrupted; nothing half-written was left behind\n")
    for _ in range(600):  # Python's own helper ends when it sees that its pipe is closed
        if not any(map(works, children)):
            break
        time.sleep(0.1)
    assert not any(map(works, children))
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_a_file_is_named_as_the_caller_named_it(
    client: Any, tmp_path: Path, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame.assign(vote="perhaps").to_csv("votes.csv", index=False)
    with pytest.raises(InputError, match=r"^votes\.csv, row 1"):
        sgd.fit("votes.csv", client)


@pytest.mark.parametrize("address", ["nonsense", "tcp://host", "smoke://host:1", "tcp://host:99999"])
def test_command_says_what_an_address_is(cli: Any, tmp_path: Path, frame: pd.DataFrame, address: str) -> None:
    path = tmp_path / "votes.csv"
    frame.to_csv(path, index=False)
    answer = cli("fit", path, "-o", tmp_path / "run", "--dask", address)
    assert (answer.code, repr(address) in answer.err) == (2, True)
    assert "such as tcp://host:8786" in answer.err


def test_command_says_that_no_scheduler_answers(
    cli: Any, tmp_path: Path, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)  # nothing listens there, however long one waits
    path = tmp_path / "votes.csv"
    frame.to_csv(path, index=False)
    answer = cli("fit", path, "-o", tmp_path / "run", "--dask", "tcp://127.0.0.1:9")
    assert answer.code == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in answer.err
    assert not (tmp_path / "run").exists()


def test_a_worker_that_is_killed_changes_nothing(client: Any, frame: pd.DataFrame, assert_same_posterior: Same) -> None:
    expected = in_memory(frame, max_steps=5)
    killed = []

    def kill(progress: Progress) -> None:
        if progress.step == 2:
            pids, keys = client.run(os.getpid), client.has_what()
            holders = [worker for worker, held in keys.items() if any("build_group" in str(key) for key in held)]
            killed.append(pids[holders[0]])
            os.kill(pids[holders[0]], signal.SIGKILL)

    found = sgd.fit(dd.from_pandas(frame, npartitions=4), client, max_steps=5, on_progress=kill)
    assert len(killed) == 1
    assert_same_posterior(found.to_local().posterior, expected.posterior)
