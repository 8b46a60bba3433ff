"""`softgold uncertainty`: what it writes, says and refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from softgold.imaging.segmentation.simulation import ToySettings, write_toy_study


@pytest.fixture
def toy(tmp_path):
    settings = ToySettings(n_validation=2, n_blurred=3, n_clear=3, n_shifted=3, size=12, n_members=4)
    write_toy_study(tmp_path / "toy", settings)
    return tmp_path / "toy"


def test_it_writes_tables_and_maps(cli, toy, tmp_path):
    out = tmp_path / "out"
    answer = cli("uncertainty", toy, "-o", out, "--splits", toy / "splits.csv", "--maps", "--json")
    assert answer.code == 0
    assert sorted(path.name for path in out.iterdir()) == ["cases.csv", "maps", "tasks.csv", "uncertainty.json"]
    found = json.loads(answer.out)
    assert found == json.loads((out / "uncertainty.json").read_text())
    assert found["n_cases"] == {"iid": 6, "ood": 3}
    assert found["fitted_on"] == "validation"
    assert len(pd.read_csv(out / "cases.csv")) == 9
    tasks = pd.read_csv(out / "tasks.csv")
    separated = tasks[(tasks["metric"] == "auroc") & (tasks["measure"] == "epistemic")]
    assert separated["value"].tolist() == [1.0] * 3
    with np.load(out / "maps" / "blurred000.npz") as arrays:
        parts = {name: arrays[name] for name in arrays.files}
    total = parts["expected_entropy"] + parts["mutual_information"]
    np.testing.assert_allclose(total, parts["predictive_entropy"], atol=1e-6)
    assert "out-of-distribution, auroc, all:" in answer.err


def test_quiet_and_force(cli, toy, tmp_path):
    arguments = ("uncertainty", toy, "-o", tmp_path / "out", "--splits", toy / "splits.csv", "--quiet")
    assert (cli(*arguments).code, cli(*arguments).code, cli(*arguments, "--force").code) == (0, 2, 0)
    assert cli(*arguments, "--force").err == ""


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p, m: (p * 0.9, m), "must sum to 1"),
        (lambda p, m: (p, m[:, 1:]), "masks must have shape"),
        (lambda p, m: (p * np.nan, m), "must be finite"),
        (lambda p, m: (p, m + 5), "classes 0 to 1"),
    ],
)
def test_bad_cases_are_one_sentence_and_nothing_is_written(cli, toy, tmp_path, spoil, message):
    path = toy / "blurred001.npz"
    with np.load(path) as arrays:
        probabilities, masks = spoil(arrays["probabilities"], arrays["masks"])
    np.savez(path, probabilities=probabilities, masks=masks)
    answer = cli("uncertainty", toy, "-o", tmp_path / "out", "--splits", toy / "splits.csv")
    assert answer.code == 2
    assert message in answer.err
    assert "blurred001.npz" in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_there(cli, tmp_path):
    answer = cli("uncertainty", tmp_path / "none", "-o", tmp_path / "out")
    assert (answer.code, "is not a folder of cases" in answer.err) == (2, True)


def test_an_address_keeps_both_slashes(cli, tmp_path):
    answer = cli("uncertainty", "https://example.org/cases", "-o", tmp_path / "out")
    assert (answer.code, "https://example.org/cases is not a folder of cases" in answer.err) == (2, True)
