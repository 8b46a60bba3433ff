"""Runs on disk: exact round trips, files that are the same bytes, and damage that is said."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgold.errors import InputError, OutputError, StorageError
from softgold.models.base import Fit, fit
from softgold.readers import read_votes
from softgold.runs import open_run, votes_digest
from softgold.runs.files import read_arrays
from softgold.tables.votes import VoteTable

FILES = {"soft_labels.csv", "annotators.csv", "posterior.npz", "votes.parquet", "run.json"}


@pytest.fixture(scope="module")
def votes(draw_crowd: Callable[..., Any]) -> VoteTable:
    drawn = draw_crowd(2, n_items=40, n_annotators=10, votes_per_item=4).votes
    return read_votes(drawn.to_frame())  # annotators in the order of the file, as they come back


@pytest.fixture(scope="module")
def fitted(votes: VoteTable) -> Fit:
    return fit(votes, engine="coordinate")


@pytest.fixture(scope="module")
def stored(votes: VoteTable, fitted: Fit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "run"
    fitted.save(path, source="votes.csv")
    return path


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    """A run of one's own, to damage."""
    return Path(shutil.copytree(stored, tmp_path / "run"))


# --- round trips ---


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "coordinate"},
        {"engine": "coordinate", "prevalence": 0.3},
        {"model": "glad", "engine": "coordinate", "prior": "paper", "max_steps": 5},
        {"model": "glad", "engine": "coordinate", "ability_mean": 0.5, "difficulty_scale": 2.0},
        pytest.param({"model": "glad", "init": "paper", "max_steps": 5, "seed": 3}, marks=pytest.mark.slow),
        {"model": "mean", "smoothing": (1, 2)},
        {"model": "majority", "tie": "positive"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
def test_a_run_comes_back_exactly(
    votes: VoteTable, tmp_path: Path, options: dict[str, Any], assert_same_posterior: Callable[..., None]
) -> None:
    before = fit(votes, **options)
    before.save(tmp_path / "run")
    after = open_run(tmp_path / "run").fit
    assert_same_posterior(before.posterior, after.posterior)
    assert (after.model, after.settings) == (before.model, before.settings)
    for name, value in vars(before.diagnostics).items():
        if name != "seconds":
            assert getattr(after.diagnostics, name) == value, name
    assert np.array_equal(after.posterior.predict(votes).p, before.posterior.predict(votes).p)


def test_the_files_of_a_run(stored: Path, fitted: Fit, votes: VoteTable) -> None:
    assert {path.name for path in stored.iterdir()} == FILES
    labels = pd.read_csv(stored / "soft_labels.csv", dtype={"item": "str"})
    assert labels["p"].to_numpy() == pytest.approx(fitted.posterior.soft_labels().p, rel=1e-14)
    assert labels["item"].tolist() == votes.item_ids.tolist()
    annotators = pd.read_csv(stored / "annotators.csv")
    for name in ("ability_mean", "lean_lo", "sensitivity", "specificity_hi"):
        assert annotators[name].to_numpy() == pytest.approx(fitted.posterior.annotators()[name].to_numpy(), rel=1e-12)
    record = json.loads((stored / "run.json").read_text())
    assert record["version"] == 3
    assert record["model"] == "two-class"
    assert record["input"]["digest"] == votes_digest(votes)
    assert record["input"]["source"] == "votes.csv"
    assert record["settings"] == {
        "engine": "coordinate",
        "seed": 0,
        "max_steps": None,
        "batch_items": None,
        "device": "cpu",
        "prevalence": "able",
    }
    assert record["diagnostics"]["learned"] == fitted.diagnostics.learned
    assert record["diagnostics"]["elbo"] == list(fitted.diagnostics.elbo)
    assert record["timings"]["fit_seconds"] > 0
    assert set(record["versions"]) >= {"softgold", "numpy", "torch", "pyro-ppl"}


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_votes_come_back_with_their_weights(votes: VoteTable, stored: Path, tmp_path: Path) -> None:
    again = open_run(stored).votes
    assert votes_digest(again) == votes_digest(votes)
    frame = votes.to_frame()
    weighted = read_votes(
        pd.concat([frame, frame.head(5).assign(vote=lambda rows: 1 - rows["vote"])]), duplicates="mean"
    )
    fit(weighted, engine="coordinate").save(tmp_path / "run")
    back = open_run(tmp_path / "run").votes
    assert back.weights is not None
    assert weighted.weights is not None
    assert back.weights.tolist() == weighted.weights.tolist()


def test_odd_ids_come_back(tmp_path: Path) -> None:
    ids = ["007", "7", "ünï", "two\nlines", "a,b", "=1+1", "\U0001f600", "x" * 9000, "NA", " pad "]
    votes = VoteTable.from_codes(np.arange(10), np.arange(10) % 2, np.arange(10) % 3 == 0, ids, ["nan", "é" * 50])
    with pytest.warns(match="connected components"):
        fit(votes, engine="coordinate").save(tmp_path / "run")
    back = open_run(tmp_path / "run").fit.posterior
    assert back.item_ids.tolist() == ids
    assert back.annotator_ids.tolist() == ["nan", "é" * 50]
    assert open_run(tmp_path / "run").votes.item_ids.tolist() == ids


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [{"engine": "coordinate"}, pytest.param({"max_steps": 20}, marks=pytest.mark.slow)],
    ids=["coordinate", "svi"],
)
def test_the_same_seed_gives_the_same_bytes(votes: VoteTable, tmp_path: Path, options: dict[str, Any]) -> None:
    for name in ("first", "second"):
        fit(votes, **options).save(tmp_path / name, samples=100)
    for name in FILES - {"run.json"}:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    records = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("first", "second")]
    for record in records:
        assert record.pop("timings")["fit_seconds"] > 0
    assert records[0] == records[1]


def test_samples_go_into_the_table_and_not_into_the_posterior(
    votes: VoteTable, fitted: Fit, tmp_path: Path, assert_same_posterior: Callable[..., None]
) -> None:
    fitted.save(tmp_path / "run", samples=50)
    p = pd.read_csv(tmp_path / "run" / "soft_labels.csv")["p"].to_numpy()
    assert np.array_equal(p, fitted.posterior.sample_soft_labels(50, seed=0).p)
    assert_same_posterior(open_run(tmp_path / "run").fit.posterior, fitted.posterior)


def test_an_existing_run_is_replaced_only_when_asked(votes: VoteTable, fitted: Fit, run: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        fitted.save(run)
    fitted.save(run, force=True)
    assert {path.name for path in run.iterdir()} == FILES


def test_the_digest_sees_every_part_of_the_votes(votes: VoteTable) -> None:
    frame = votes.to_frame()
    others = [
        frame.assign(vote=frame["vote"].where(frame.index != 7, 1 - frame["vote"])),
        frame.assign(item="x" + frame["item"]),
        frame.assign(annotator=frame["annotator"] + " "),
        frame.iloc[::-1],
        frame.iloc[1:],
    ]
    digests = {votes_digest(read_votes(other)) for other in (frame, *others)}
    assert len(digests) == 6
    assert votes_digest(read_votes(frame)) == votes_digest(votes)


# --- damage ---


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    arrays = read_arrays(path)
    change(arrays)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = np.asarray(value) if not callable(value) else value(arrays[name])

    return change


DAMAGED_ARRAYS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "missing key": (lambda arrays: arrays.pop("item_mean"), "'item_mean' is missing"),
    "missing ids": (lambda arrays: arrays.pop("item_ids_utf8"), "'item_ids_utf8' is missing"),
    "too few rows": (put("item_mean", lambda array: array[1:]), "item_mean is not an array of numbers of shape (40,)"),
    "text": (put("item_low", lambda array: array.astype(str)), "item_low is not an array of numbers"),
    "infinite": (put("item_high", lambda array: array + np.inf), "item_high is not finite"),
    "p above 1": (put("item_positive", lambda array: array + 1), "item_positive is not between 0 and 1"),
    "ids that do not fit": (put("item_ids_ends", lambda array: array + 1), "item_ids does not fit together"),
    "ids out of order": (put("item_ids_ends", lambda array: array[::-1]), "item_ids does not fit together"),
    "no ids": (put("annotator_ids_ends", np.zeros(0, dtype=np.int64)), "annotator_ids does not fit together"),
    "ids as numbers": (put("item_ids_ends", lambda array: array / 1.0), ""),
    "ids not UTF-8": (put("item_ids_utf8", lambda array: array * 0 + 255), ""),
    "twice the same id": (put("item_ids_utf8", lambda array: array * 0 + 65), "item_ids has a duplicated id"),
}


@pytest.mark.parametrize("kind", DAMAGED_ARRAYS)
def test_arrays_that_do_not_belong_together(run: Path, kind: str) -> None:
    change, said = DAMAGED_ARRAYS[kind]
    rewritten(run / "posterior.npz", change)
    with pytest.raises(StorageError) as caught:
        _ = open_run(run).fit
    assert str(caught.value).startswith(f"{run} is not a run that this version can read: ")
    assert said in str(caught.value)


class Bomb:
    """Unpickling this creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.target),))


def npy_bytes(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def foreign_files(target: Path) -> dict[str, bytes]:
    bomb = np.array([Bomb(target)], dtype=object)
    archive = io.BytesIO()
    np.savez(archive, item_mean=bomb)
    compressed = io.BytesIO()
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("notes.txt", "not an array")
    return {
        "empty": b"",
        "text": b"hello",
        "pickle": pickle.dumps(Bomb(target)),
        "one array": npy_bytes(np.arange(3)),
        "a pickled array": npy_bytes(bomb),
        "an archive with a pickled array": archive.getvalue(),
        "an archive of something else": compressed.getvalue(),
        "the magic bytes alone": b"PK\x03\x04",
    }


@pytest.mark.parametrize("kind", foreign_files(Path()))
def test_foreign_files_are_refused_and_nothing_is_executed(run: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "executed"
    (run / "posterior.npz").write_bytes(foreign_files(target)[kind])
    with pytest.raises(StorageError):
        _ = open_run(run).fit
    assert not target.exists()
    pickle.loads(pickle.dumps(Bomb(target)))  # the bomb itself is live
    assert target.exists()


@pytest.mark.parametrize("name", ["posterior.npz", "run.json", "votes.parquet"])
def test_missing_and_truncated_files(run: Path, name: str) -> None:
    def load(run: Path) -> object:
        return open_run(run).votes if name == "votes.parquet" else open_run(run).fit

    data = (run / name).read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 1):
        (run / name).write_bytes(data[:length])
        if name == "run.json" and length == len(data) - 1:
            continue  # the final line end is not missed
        with pytest.raises(StorageError, match=name.partition(".")[0]):
            load(run)
    (run / name).unlink()
    with pytest.raises(StorageError, match="there is no "):
        load(run)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a run: it has no soft_labels\.csv; 'softgold fit' makes one"):
        open_run(tmp_path)
    with pytest.raises(InputError, match="there is no run "):
        open_run(tmp_path / "nowhere")


def nested(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *parents, last = path.split("/")
    place = record
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return record


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", "something else", "is not the record of a fit"),
        ("format", None, "is not the record of a fit"),
        ("version", 2, "written by another version of softgold (format 2, this one reads 3); fit the votes again"),
        ("version", 4, "written by another version of softgold (format 4, this one reads 3); fit the votes again"),
        ("version", "3", "written by another version of softgold (format '3', this one reads 3)"),
        ("version", None, "written by another version of softgold"),
        ("model", None, "run.json.model is missing"),
        ("model", "em", "model must be one of"),
        ("model", 5, "run.json.model must be a text, got 5"),
        ("model", ["two-class"], "run.json.model must be a text"),
        ("model", "mean", "is not a run that this version can read"),
        ("model", "glad", "is not a run that this version can read"),
        ("settings", None, "run.json.settings is missing"),
        ("settings", [], "run.json.settings must be an object"),
        ("settings/engine", "em", "engine must be one of"),
        ("settings/prevalence", 2.0, "prevalence must"),
        ("settings/prevalence", [1], "is not a run that this version can read"),
        ("settings/unknown", 5, "unknown has no meaning"),
        ("diagnostics", None, "run.json.diagnostics is missing"),
        ("diagnostics", "text", "run.json.diagnostics must be an object"),
        ("diagnostics/elbo", ["1"], "run.json.diagnostics.elbo[0] must be a number"),
        ("diagnostics/elbo", [10**400], "run.json.diagnostics.elbo[0] must be a number"),
        ("diagnostics/components", [1], "run.json.diagnostics.components[0] must be an object"),
        ("diagnostics/notices", [{"kind": "data"}], "run.json.diagnostics.notices[0].text is missing"),
    ],
)
def test_records_that_are_not_ours(run: Path, path: str, value: Any, said: str) -> None:
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(nested(record, path, value)))
    with pytest.raises(StorageError) as caught:
        _ = open_run(run).fit
    assert said in str(caught.value)


def test_a_run_of_the_first_version_says_to_fit_again(run: Path, cli: Callable[..., Any]) -> None:
    """As it was written: no model, other arrays. The sentence comes before anything else is read."""
    record = {"format": "softgold run", "version": 1, "settings": {"family": "free"}, "family": "free"}
    (run / "run.json").write_text(json.dumps(record))
    (run / "posterior.npz").unlink()
    with pytest.raises(StorageError, match=r"written by another version of softgold .* fit the votes again"):
        _ = open_run(run).fit
    answer = cli("predict", run, run / "votes.parquet")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith("fit the votes again\n")


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", '"text"', "{", '{"format": "softgold run", "version": 2', "[" * 100_000, "\ufeff{}", "NaN"],
    ids=["empty", "null", "list", "string", "open", "cut", "deep", "mark", "NaN"],
)
def test_records_that_are_no_object(run: Path, text: str) -> None:
    (run / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(StorageError, match=r"run\.json"):
        _ = open_run(run).fit


def test_a_record_that_is_not_text(run: Path) -> None:
    (run / "run.json").write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(StorageError, match=r"run\.json is damaged"):
        _ = open_run(run).fit


def test_votes_that_are_not_votes(run: Path) -> None:
    frame = pd.read_parquet(run / "votes.parquet")
    for damaged in (frame.assign(vote=2), frame.drop(columns="item"), frame.assign(item=None)):
        damaged.to_parquet(run / "votes.parquet")
        with pytest.raises(StorageError, match=r"votes\.parquet is damaged or not ours"):
            _ = open_run(run).votes


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_are_noticed_or_harmless(
    run: Path, stored: Path, fitted: Fit, data: st.DataObject, assert_same_posterior: Callable[..., None]
) -> None:
    whole = (stored / "posterior.npz").read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1), label="start")
    length = data.draw(st.sampled_from([1, 1, 1, 2, 4, 30, 300]), label="length")
    new = data.draw(
        st.one_of(st.binary(max_size=length), st.just(bytes(byte ^ 1 for byte in whole[start : start + 1])))
    )
    (run / "posterior.npz").write_bytes(whole[:start] + new + whole[start + length :])
    try:
        found = open_run(run).fit.posterior
    except StorageError:
        return
    assert_same_posterior(found, fitted.posterior)


def header_places(whole: bytes) -> list[int]:
    """Positions of the bytes of the arrays' headers, where a change could make NumPy read less than there is."""
    found: list[int] = []
    place = whole.find(b"{'descr'")
    while place >= 0:
        found += range(place, whole.index(b"}", place) + 1)
        place = whole.find(b"{'descr'", place + 1)
    return found


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_headers_are_noticed(run: Path, stored: Path, data: st.DataObject) -> None:
    whole = bytearray((stored / "posterior.npz").read_bytes())
    place = data.draw(st.sampled_from(header_places(bytes(whole))))
    new = data.draw(st.sampled_from(b"0123456789fiu<>|OSc(),' \n").filter(lambda byte: byte != whole[place]))
    whole[place] = new
    (run / "posterior.npz").write_bytes(whole)
    with pytest.raises(StorageError):
        _ = open_run(run).fit
