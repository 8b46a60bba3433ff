"""Segmentation uncertainty: the toy study tells what was put in; folders of cases; what is refused."""

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.imaging.segmentation import (
    AGGREGATIONS,
    MEASURES,
    Case,
    CaseMaps,
    StudySettings,
    aggregate_patch,
    case_files,
    entropy_decomposition,
    evaluate_cases,
    foreground_dice,
    foreground_ged,
    reference_variance,
)
from softgold.imaging.segmentation.simulation import RATER_VOLUMES, ToySettings, toy_cases, write_toy_study
from softgold.metrics import (
    aurc,
    average_calibration_error,
    dice,
    excess_aurc,
    generalized_energy_distance,
    ncc,
    platt_scaling,
    rater_variance,
)

SMALL = ToySettings(n_validation=4, n_blurred=6, n_clear=6, n_shifted=6, size=16, n_members=8)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy") / "study"
    write_toy_study(folder, SMALL, seed=3)
    return folder


@pytest.fixture(scope="module")
def study(toy):
    return evaluate_cases(case_files(toy, toy / "splits.csv"))


class TestToyStudy:
    def test_raters_segment_the_published_shares(self):
        settings = ToySettings(n_validation=0, n_blurred=3, n_clear=0, n_shifted=0, size=48)
        for case in toy_cases(settings, seed=1):
            volumes = case.masks.reshape(3, -1).sum(axis=1)
            np.testing.assert_allclose(volumes / volumes[2], RATER_VOLUMES, atol=0.02)

    def test_the_aleatoric_measure_ranks_the_border_of_blurred_spheres_first(self):
        """All pixels on which raters disagree have more aleatoric uncertainty than any other."""
        settings = ToySettings(n_validation=0, n_blurred=8, n_clear=0, n_shifted=0, size=24, n_members=20)
        for case in toy_cases(settings, seed=2):
            maps = CaseMaps.of(Case.of(case.probabilities, case.masks))
            border = (case.masks.max(axis=0) != case.masks.min(axis=0)).ravel()
            aleatoric, epistemic = (maps.map(name).ravel() for name in ("aleatoric", "epistemic"))
            assert aleatoric[border].min() > aleatoric[~border].max()
            assert maps.ncc("aleatoric") > 0.9
            assert aleatoric[border].mean() > 20 * epistemic[border].mean()

    def test_the_epistemic_measure_separates_the_shifted_cases(self, study):
        for aggregation in AGGREGATIONS:
            assert study.value("auroc", measure="epistemic", aggregation=aggregation, split="all") == 1.0
            # Blurred i.i.d. spheres are as ambiguous as any: the aleatoric measure cannot tell.
            assert study.value("auroc", measure="aleatoric", aggregation=aggregation, split="all") < 0.6

    def test_the_aleatoric_measure_models_the_ambiguity(self, study):
        values = {measure: study.value("ncc", measure=measure, split="iid") for measure in MEASURES}
        assert values["aleatoric"] > 0.9
        assert values["aleatoric"] > values["epistemic"]

    def test_clear_and_shifted_cases_have_raters_who_agree(self):
        for case in toy_cases(SMALL, seed=5):
            agree = bool((case.masks.max(axis=0) == case.masks.min(axis=0)).all())
            assert agree == (case.kind != "blurred")

    def test_two_dimensions_and_the_seed(self):
        settings = ToySettings(n_validation=2, n_blurred=1, n_clear=1, n_shifted=3, dimensions=2, size=20)
        one, two, other = (list(toy_cases(settings, seed=seed)) for seed in (1, 1, 2))
        assert [case.probabilities.shape for case in one] == [(10, 2, 20, 20)] * 7
        assert [case.kind for case in one[4:]] == ["cube", "grey", "outside"]
        assert all((a.image == b.image).all() for a, b in zip(one, two, strict=True))
        assert any((a.image != b.image).any() for a, b in zip(one, other, strict=True))

    @pytest.mark.parametrize("change", [{"dimensions": 4}, {"n_members": 1}, {"size": 4}, {"known_spread": -1.0}])
    def test_bad_settings(self, change):
        with pytest.raises(UsageError):
            ToySettings(**change)


class TestStudy:
    def test_the_table_has_every_task(self, study):
        counts = study.tasks.groupby(["task", "metric"]).size().to_dict()
        assert counts == {
            ("ambiguity", "ged"): 2,
            ("ambiguity", "ncc"): 6,
            ("calibration", "ace"): 6,
            ("failure", "aurc"): 18,
            ("failure", "e-aurc"): 18,
            ("out-of-distribution", "auroc"): 9,
            ("segmentation", "dice"): 2,
        }
        assert study.fitted_on == "validation"
        assert study.cases["split"].value_counts().to_dict() == {"iid": 12, "ood": 6}

    def test_a_case_is_what_the_metrics_say(self, toy, study):
        row = study.cases.set_index("case").loc["blurred002"]
        with np.load(toy / "blurred002.npz") as arrays:
            samples, masks = arrays["probabilities"], arrays["masks"]
        parts = entropy_decomposition(np.moveaxis(samples, 1, -1))
        mean = samples.mean(axis=0)[1] > 0.5
        assert row["dice"] == pytest.approx(np.mean([dice(mean, mask) for mask in masks]))
        assert row["ged"] == pytest.approx(generalized_energy_distance(samples[:, 1] > 0.5, masks))
        assert row["ncc_aleatoric"] == pytest.approx(ncc(rater_variance(masks), parts.expected_entropy))
        assert row["image_epistemic"] == pytest.approx(parts.mutual_information.sum())
        assert row["patch_predictive"] == pytest.approx(aggregate_patch(parts.predictive_entropy).total)
        above = parts.expected_entropy[parts.expected_entropy >= study.thresholds["aleatoric"]]
        assert row["threshold_aleatoric"] == pytest.approx(above.mean())

    def test_the_tasks_follow_from_the_cases(self, study):
        for split, rows in study.cases.groupby("split"):
            risk, score = 1 - rows["dice"], rows["patch_predictive"]
            options = {"measure": "predictive", "aggregation": "patch", "split": split}
            assert study.value("aurc", **options) == pytest.approx(aurc(risk, -score))
            assert study.value("e-aurc", **options) == pytest.approx(excess_aurc(risk, -score))
            assert study.value("ace", measure="epistemic", split=split) == pytest.approx(rows["ace_epistemic"].mean())
            assert study.value("dice", split=split) == pytest.approx(rows["dice"].mean())

    def test_calibration_is_platt_on_the_validation_pixels(self, toy, study):
        def pixels(path):
            with np.load(path) as arrays:
                samples, masks = arrays["probabilities"], arrays["masks"]
            right = (masks == (samples.mean(axis=0)[1] > 0.5)).mean(axis=0)
            return right.ravel(), entropy_decomposition(np.moveaxis(samples, 1, -1)).predictive_entropy.ravel()

        right, uncertainty = (
            np.concatenate(part) for part in zip(*map(pixels, toy.glob("validation*.npz")), strict=True)
        )
        platt = platt_scaling(right, -uncertainty)
        assert study.platt["predictive"].a == pytest.approx(platt.a)
        right, uncertainty = pixels(toy / "shifted001.npz")
        expected = average_calibration_error(right, platt.transform(-uncertainty))
        assert study.cases.set_index("case").loc["shifted001", "ace_predictive"] == pytest.approx(expected)

    def test_the_ncc_of_raters_who_agree_is_undefined_and_counted(self, study):
        row = study.tasks[(study.tasks["metric"] == "ncc") & (study.tasks["split"] == "iid")].iloc[0]
        assert (row["n_cases"], row["n_undefined"]) == (12, 6)

    @pytest.mark.slow
    def test_swapped_roles(self, toy, study):
        swapped = evaluate_cases(case_files(toy, toy / "splits.csv"), StudySettings(roles="ambiguity"))
        np.testing.assert_allclose(swapped.cases["image_aleatoric"], study.cases["image_epistemic"])

    def test_legacy_platt_and_other_bins(self, toy):
        settings = StudySettings(platt="legacy", n_bins=5, patch_size=3)
        result = evaluate_cases(case_files(toy, toy / "splits.csv"), settings)
        assert result.tasks["value"].notna().any()

    @pytest.mark.slow
    def test_without_validation_cases(self, toy):
        steps = []
        with pytest.warns(DataWarning, match="fitted on the i.i.d. cases themselves"):
            result = evaluate_cases(case_files(toy), progress=steps.append)
        assert result.fitted_on == "iid"
        assert np.isnan(result.value("auroc", measure="epistemic", aggregation="patch", split="all"))
        assert sum(steps) == 2 * 22


class TestManyClasses:
    def test_dice_over_the_classes_that_occur(self):
        a, b = np.array([0, 1, 1, 3]), np.array([0, 1, 0, 3])
        assert foreground_dice(a, b, 5) == pytest.approx((2 / 3 + 1) / 2)
        assert foreground_dice(a * 0, a * 0, 5) == 1.0

    def test_two_classes_are_the_binary_case(self):
        rng = np.random.default_rng(0)
        samples, raters = rng.integers(0, 2, (3, 20)), rng.integers(0, 2, (4, 20))
        assert foreground_ged(samples, raters, 2) == pytest.approx(generalized_energy_distance(samples, raters))
        np.testing.assert_allclose(reference_variance(raters, 2), rater_variance(raters))

    def test_the_variance_is_zero_where_raters_agree(self):
        masks = np.array([[0, 1, 2], [0, 1, 0], [0, 1, 1]])
        assert reference_variance(masks, 3).tolist() == pytest.approx([0, 0, 1 / 3])


def softmax(shape=(2, 2, 4, 4)):
    return np.full(shape, 1 / shape[1])


class TestBadInput:
    @pytest.mark.parametrize(
        ("probabilities", "masks", "message"),
        [
            (softmax() * 0.9, np.zeros((1, 4, 4)), "must sum to 1"),
            (softmax() * np.nan, np.zeros((1, 4, 4)), "must be finite"),
            (softmax() + np.array([-1, 1])[None, :, None, None], np.zeros((1, 4, 4)), r"lie in \[0, 1\]"),
            (softmax(), np.zeros((1, 4, 5)), r"masks must have shape .*\(4, 4\).*got \(1, 4, 5\)"),
            (softmax(), np.zeros((0, 4, 4)), "masks must have shape"),
            (softmax(), np.full((1, 4, 4), 2), "classes 0 to 1, got 2"),
            (softmax(), np.full((1, 4, 4), np.nan), "classes 0 to 1, got nan"),
            (softmax(), np.full((1, 4, 4), "a"), "masks must be numbers"),
            (np.ones((2, 2)), np.zeros((1,)), "samples, classes, space"),
        ],
    )
    def test_cases(self, probabilities, masks, message):
        with pytest.raises(InputError, match=message):
            Case.of(probabilities, masks)

    @pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
    def test_an_error_names_the_file(self, tmp_path):
        np.savez(tmp_path / "bad.npz", probabilities=softmax() * 0.9, masks=np.zeros((1, 4, 4)))
        with pytest.raises(InputError, match=r"bad\.npz: probabilities must sum to 1"):
            evaluate_cases(case_files(tmp_path))

    @pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
    def test_pairs_of_files(self, tmp_path):
        for name in ("a", "b"):
            np.save(tmp_path / f"{name}.npy", softmax())
            np.save(tmp_path / f"{name}_masks.npy", np.zeros((2, 4, 4)))
        assert len(evaluate_cases(case_files(tmp_path)).cases) == 2
        (tmp_path / "b_masks.npy").unlink()
        with pytest.raises(InputError, match=r"b\.npy has no masks of raters"):
            case_files(tmp_path)

    def test_folders(self, tmp_path):
        with pytest.raises(InputError, match="has no cases"):
            case_files(tmp_path)
        with pytest.raises(InputError, match="is not a folder"):
            case_files(tmp_path / "none")
        np.savez(tmp_path / "a.npz", softmax=softmax())
        with pytest.raises(InputError, match=r"there is no array 'probabilities', only softmax"):
            case_files(tmp_path)[0].load()
        (tmp_path / "a.npz").write_bytes(b"PK no zip")
        with pytest.raises(InputError, match="as a NumPy file"):
            case_files(tmp_path)[0].load()

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([("a", "iid")], "does not say the split of the case 'b'"),
            ([("a", "iid"), ("b", "test")], "must be one of validation, iid, ood, got 'test'"),
            ([("a", "iid"), ("b", "iid"), ("a", "iid")], "'a' is duplicated"),
            ([("a", "iid"), ("b", "iid"), ("c", "iid")], "no file of the case 'c'"),
        ],
    )
    def test_splits(self, tmp_path, rows, message):
        for name in ("a", "b"):
            np.savez(tmp_path / f"{name}.npz", probabilities=softmax(), masks=np.zeros((2, 4, 4)))
        with pytest.raises(InputError, match=message):
            case_files(tmp_path, pd.DataFrame(rows, columns=["case", "split"]))

    @pytest.mark.parametrize(("split", "message"), [("validation", "no case to judge"), ("ood", "all are 'ood'")])
    def test_nothing_to_fit_on_or_to_judge(self, tmp_path, split, message):
        np.savez(tmp_path / "a.npz", probabilities=softmax(), masks=np.zeros((2, 4, 4)))
        with pytest.raises(InputError, match=message):
            evaluate_cases(case_files(tmp_path, pd.DataFrame({"case": ["a"], "split": [split]})))
