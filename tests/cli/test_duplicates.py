"""`softgold duplicates`: the rounds of a plan from the command line."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def study(tmp_path):
    """30 samples in groups of three, and who is who."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 6))
    np.save(tmp_path / "x.npy", np.repeat(centres, 3, axis=0) + 0.01 * rng.normal(size=(30, 6)))
    (tmp_path / "ids.txt").write_text("".join(f"im{i:02d}\n" for i in range(30)))
    return tmp_path


def vote(folder, pairs, name="votes.csv"):
    """Three annotators, one of whom is wrong about the first pair."""
    table = pd.read_csv(folder / pairs)
    truth = [int(int(a[2:]) // 3 == int(b[2:]) // 3) for a, b in zip(table["first"], table["second"], strict=True)]
    rows = [(item, who, answer) for item, answer in zip(table["item"], truth, strict=True) for who in "abc"]
    rows[0] = (*rows[0][:2], 1 - rows[0][2])
    pd.DataFrame(rows, columns=["item", "annotator", "vote"]).to_csv(folder / name, index=False)
    return folder / name


def propose(cli, folder, number, *options):
    return cli(
        "duplicates",
        "propose",
        folder / "x.npy",
        "--state",
        folder / "plan.json",
        "-o",
        folder / f"{number}.csv",
        *options,
    )


def test_a_plan_from_beginning_to_end(cli, study):
    assert propose(cli, study, 1, "--ids", study / "ids.txt").code == 0
    assert cli("duplicates", "update", study / "plan.json", vote(study, "1.csv")).code == 0
    number = 1
    while "finished" not in (answer := propose(cli, study, number + 1)).err:
        number += 1
        assert answer.code == 0
        answer = cli("duplicates", "update", study / "plan.json", vote(study, f"{number}.csv"))
        assert answer.code == 0
        if "finished" in answer.err:
            break
    answer = cli("duplicates", "status", study / "plan.json", "--json", "--quiet")
    now = json.loads(answer.out)
    assert now["finished"]
    assert now["components"] == {"3": 10}
    assert now["n_rounds"] == number
    answer = cli("duplicates", "status", study / "plan.json", "--table", "components")
    assert answer.out.splitlines()[:2] == ["sample,component,size", "im00,0,3"]
    assert "components: 10 of 3" in answer.err
    assert "if near duplicates of a sample were always nearer" in answer.err


@pytest.mark.parametrize("method", ["majority", "mean", "two-class", "glad"])
def test_every_aggregator(cli, study, method):
    propose(cli, study, 1, "--ids", study / "ids.txt")
    votes = vote(study, "1.csv")
    assert cli("duplicates", "update", study / "plan.json", votes, "--method", method).code == 0
    now = json.loads(cli("duplicates", "status", study / "plan.json", "--json", "--quiet").out)
    truth = pd.read_csv(votes).groupby("item")["vote"].mean() > 0.5
    assert now["positives"] == [int(truth.sum())]


def test_soft_labels_of_any_aggregator(cli, study):
    propose(cli, study, 1, "--ids", study / "ids.txt", "--metric", "euclidean")
    pairs = pd.read_csv(study / "1.csv")
    pairs.assign(p=0.8)[["item", "p"]].to_csv(study / "soft.csv", index=False)
    state = study / "plan.json"
    assert "0 of" in cli("duplicates", "update", state, "--soft-labels", study / "soft.csv", "--threshold", 0.9).err


def test_pairs_that_were_lost_are_written_again(cli, study):
    propose(cli, study, 1, "--ids", study / "ids.txt")
    assert cli("duplicates", "status", study / "plan.json", "--table", "pairs", "-o", study / "again.csv").code == 0
    again, first = pd.read_csv(study / "again.csv"), pd.read_csv(study / "1.csv")
    pd.testing.assert_frame_equal(again[list(first)], first)


def test_distances_themselves(cli, study):
    points = np.load(study / "x.npy")
    np.save(study / "x.npy", np.abs(points[:, None] - points[None]).max(axis=2))
    assert propose(cli, study, 1, "--metric", "precomputed").code == 0
    pairs = pd.read_csv(study / "1.csv")
    assert ((pairs["first"] // 3) == (pairs["second"] // 3)).all()


def test_an_audit(cli, study):
    propose(cli, study, 1, "--ids", study / "ids.txt")
    np.save(study / "other.npy", np.random.default_rng(1).normal(size=(30, 4)))
    state, sample = study / "plan.json", study / "audit.csv"
    options = ("--source", f"other={study / 'other.npy'}", "--per-source", 20, "--top", 100)
    assert cli("duplicates", "audit", state, "-o", sample, *options).code == 0
    drawn = pd.read_csv(sample)
    assert len(drawn) == 20
    pd.DataFrame({"item": drawn["item"], "annotator": "a", "vote": 0}).to_csv(study / "votes.csv", index=False)
    answer = cli(
        "duplicates", "audit", state, "-o", study / "bounds.csv", "--sample", sample, "--votes", study / "votes.csv"
    )
    assert answer.code == 0
    assert "other: 0 near duplicates of 20 pairs, 0.0 % [0.0, 16.1], 0 of them missed" in answer.err
    assert pd.read_csv(study / "bounds.csv")["pool"].tolist() == [100]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("update", "plan.json", "votes.csv"), "is not a pair of this plan"),
        (("update", "plan.json"), "give a table of votes, or --soft-labels"),
        (("update", "none.json", "votes.csv"), "cannot read the plan"),
        (("update", "broken.json", "votes.csv"), "is damaged"),
        (("status", "broken.json"), "is damaged"),
        (("status", "ids.txt"), "is damaged"),
        (("propose", "x.npy", "--state", "plan.json", "-o", "2.csv"), "round 1 awaits its answers"),
        (("propose", "x.npy", "--state", "plan.json", "-o", "1.csv"), "--force"),
        (("propose", "ids.txt", "--state", "new.json", "-o", "2.csv"), "as a NumPy file"),
        (("propose", "nan.npy", "--state", "new.json", "-o", "2.csv"), "must be finite, and row 2 is not"),
        (("propose", "x.npy", "--state", "new.json", "-o", "2.csv", "--ids", "votes.csv"), "2 ids for 30 samples"),
        (("audit", "plan.json", "-o", "2.csv"), "give --source NAME=FILE"),
        (("audit", "plan.json", "-o", "2.csv", "--source", "x.npy"), "--source must be NAME=FILE"),
        (("audit", "plan.json", "-o", "2.csv", "--sample", "votes.csv", "--votes", "votes.csv"), "is not a table that"),
        (("status", "plan.json", "--table", "pairs", "--json"), "ask for one of them"),
        (("status", "plan.json", "-o", "2.csv"), "say which with --table"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(cli, study, monkeypatch, arguments, message):
    monkeypatch.chdir(study)
    assert propose(cli, study, 1).code == 0
    (study / "broken.json").write_text('{"format": "softgold near-duplicate plan", "version": 1}')
    (study / "votes.csv").write_text("item,annotator,vote\ncat,a,1\n")
    broken = np.load(study / "x.npy")
    broken[2, 0] = np.nan
    np.save(study / "nan.npy", broken)
    before = {path.name: path.read_bytes() for path in study.iterdir()}
    answer = cli("duplicates", *arguments)
    assert answer.code == 2
    assert message in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert {path.name: path.read_bytes() for path in study.iterdir()} == before
