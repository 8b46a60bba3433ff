"""Figures printed in the papers that this code can check, each test named after its table or figure."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from softgold.metrics import balanced_brier, brier_score, r_squared, stratified_brier, wilson_interval

# Gröger et al., CleanPatrick, Table 10: P@k in percent with its interval, at k = 100, 500 and 1000.
TABLE_10 = {
    "off-topic kNN": [(25.0, 17.6, 34.3), (15.0, 12.1, 18.4), (9.9, 8.2, 11.9)],
    "off-topic IForest": [(39.0, 30.0, 48.8), (22.6, 19.2, 26.5), (18.1, 15.8, 20.6)],
    "off-topic HBOS": [(37.0, 28.2, 46.8), (20.2, 16.9, 23.9), (16.7, 14.5, 19.1)],
    "off-topic ECOD": [(38.0, 29.1, 47.8), (21.2, 17.8, 25.0), (17.4, 15.2, 19.9)],
    "off-topic AutoEncoder": [(41.0, 31.9, 50.8), (19.6, 16.4, 23.3), (15.0, 12.9, 17.4)],
    "off-topic DeepSVDD": [(36.0, 27.3, 45.8), (19.2, 16.0, 22.9), (15.0, 12.9, 17.4)],
    "off-topic VAE": [(40.0, 30.9, 49.8), (21.6, 18.2, 25.4), (17.0, 14.8, 19.5)],
    "off-topic DIF": [(34.0, 25.5, 43.7), (21.0, 17.7, 24.8), (16.5, 14.3, 18.9)],
    "off-topic SelfClean": [(52.0, 42.3, 61.5), (21.0, 17.7, 24.8), (13.1, 11.2, 15.3)],
    "near-duplicates pHashing": [(36.0, 27.3, 45.8), (31.0, 27.1, 35.2), (31.8, 29.0, 34.8)],
    "near-duplicates SSIM": [(31.0, 22.8, 40.6), (28.0, 24.2, 32.1), (27.6, 24.9, 30.5)],
    "near-duplicates SelfClean": [(100.0, 96.3, 100.0), (100.0, 99.2, 100.0), (100.0, 99.6, 100.0)],
    "label errors NoiseRank": [(35.0, 26.4, 44.8), (28.4, 24.6, 32.5), (29.6, 26.9, 32.5)],
    "label errors CLearning": [(34.0, 25.5, 43.7), (34.2, 30.2, 38.5), (33.7, 30.8, 36.7)],
    "label errors FINE": [(19.0, 12.5, 27.8), (24.4, 20.8, 28.4), (25.2, 22.6, 28.0)],
    "label errors BHN": [(25.0, 17.6, 34.3), (32.2, 28.3, 36.4), (32.4, 29.6, 35.4)],
    "label errors SelfClean": [(26.0, 18.4, 35.4), (39.8, 35.6, 44.2), (45.7, 42.6, 48.8)],
}


def rounded_twice(percent):
    """Round to two decimals and then to one, half away from zero, as the table was made."""
    hundredths = math.floor(percent * 100 + 0.5)
    return math.floor(hundredths / 10 + 0.5) / 10


@pytest.mark.parametrize(
    ("k", "precision", "low", "high"),
    [(k, *row) for rows in TABLE_10.values() for k, row in zip((100, 500, 1000), rows, strict=True)],
)
def test_cleanpatrick_table_10_precision_at_k_intervals_are_wilson(k, precision, low, high):
    """The caption says bootstrap; the printed intervals are Wilson's, rounded twice."""
    interval = wilson_interval(round(precision * k / 100), k)
    assert rounded_twice(100 * interval.low) == low
    assert rounded_twice(100 * interval.high) == high


# Gröger et al., CleanPatrick, Table 3 and appendix H: duplicates among 150 audited pairs, in percent.
@pytest.mark.parametrize(
    ("duplicates", "share", "low", "high"), [(0, 0.0, 0.0, 2.5), (24, 16.0, 11.0, 22.7), (26, 17.3, 12.1, 24.2)]
)
def test_cleanpatrick_table_3_audit_intervals(duplicates, share, low, high):
    interval = wilson_interval(duplicates, 150)
    assert round(100 * duplicates / 150, 1) == share
    assert (round(100 * interval.low, 1), round(100 * interval.high, 1)) == (low, high)


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (0, 150, (0.0, 0.0249702443680766)),
        (24, 150, (0.10994008412845499, 0.22703968204183714)),
        (26, 150, (0.1211206322638728, 0.24185992738993722)),
        (25, 100, (0.17545211362287674, 0.34304463548061603)),
        (100, 100, (0.9630065017930143, 1.0)),
        (131, 1000, (0.11149250620200898, 0.15333164156033072)),
        (0, 0, (math.nan, math.nan)),
    ],
)
def test_worked_wilson_intervals(k, n, expected):
    assert_allclose(wilson_interval(k, n), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (7, 7), (40, 90)])
def test_wilson_interval_is_scipys(k, n, level):
    interval = binomtest(k, n).proportion_ci(level, method="wilson")
    assert_allclose(wilson_interval(k, n, level=level), (interval.low, interval.high), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("k", "n"), [(3, 2), (-1, 2), (math.nan, 2), (1, math.inf), (0, -1)])
def test_wilson_interval_of_nonsense_raises(k, n):
    with pytest.raises(ValueError, match="0 <= k <= n"):
        wilson_interval(k, n)


# Lionetti et al., Table 1: AUROC, AP, s-AUROC, s-AP of EfficientNet-b0, ResNet-50, VGG-16, ViT-base;
# and Figure 1: R^2 of AUROC with s-AUROC, and of AP with s-AP.
TABLE_1 = {
    "ENHANCE-Asymmetry": (
        [
            (0.636, 0.571, 0.585, 0.592),
            (0.656, 0.621, 0.593, 0.618),
            (0.707, 0.655, 0.617, 0.625),
            (0.635, 0.600, 0.594, 0.621),
        ],
        (0.899, 0.697),
    ),
    "ENHANCE-Border": (
        [
            (0.664, 0.794, 0.569, 0.263),
            (0.617, 0.758, 0.556, 0.253),
            (0.679, 0.785, 0.579, 0.268),
            (0.631, 0.769, 0.561, 0.253),
        ],
        (0.966, 0.695),
    ),
    "ENHANCE-Color": (
        [
            (0.709, 0.890, 0.558, 0.431),
            (0.691, 0.878, 0.551, 0.429),
            (0.694, 0.886, 0.560, 0.443),
            (0.656, 0.849, 0.533, 0.408),
        ],
        (0.874, 0.834),
    ),
    "VinDr-Pleural Thickening": (
        [
            (0.864, 0.304, 0.839, 0.300),
            (0.870, 0.302, 0.849, 0.297),
            (0.886, 0.354, 0.863, 0.341),
            (0.882, 0.329, 0.848, 0.313),
        ],
        (0.697, 0.969),
    ),
    "VinDr-Pneumothorax": (
        [
            (0.958, 0.216, 0.903, 0.191),
            (0.877, 0.090, 0.866, 0.082),
            (0.928, 0.232, 0.924, 0.224),
            (0.915, 0.093, 0.912, 0.096),
        ],
        (0.465, 0.983),
    ),
    "VinDr-Pulmonary Fibrosis": (
        [
            (0.841, 0.292, 0.836, 0.300),
            (0.853, 0.272, 0.848, 0.280),
            (0.862, 0.349, 0.854, 0.336),
            (0.861, 0.296, 0.851, 0.310),
        ],
        (0.982, 0.941),
    ),
    "CheXpert-Cardiomegaly": (
        [
            (0.752, 0.531, 0.683, 0.480),
            (0.732, 0.427, 0.678, 0.447),
            (0.717, 0.493, 0.694, 0.491),
            (0.632, 0.390, 0.616, 0.416),
        ],
        (0.840, 0.856),
    ),
    "CheXpert-Pleural Effusion": (
        [
            (0.835, 0.504, 0.801, 0.551),
            (0.868, 0.560, 0.806, 0.540),
            (0.807, 0.494, 0.775, 0.539),
            (0.785, 0.410, 0.770, 0.467),
        ],
        (0.897, 0.726),
    ),
    "CheXpert-Pneumothorax": (
        [
            (0.145, 0.012, 0.310, 0.039),
            (0.392, 0.020, 0.487, 0.039),
            (0.486, 0.019, 0.498, 0.033),
            (0.760, 0.046, 0.581, 0.047),
        ],
        (0.916, 0.659),
    ),
}


@pytest.mark.parametrize("task", TABLE_1)
def test_soft_metrics_paper_figure_1_r_squared_follow_from_its_table_1(task):
    """Within what three printed digits leave open."""
    rows, (auroc, precision) = TABLE_1[task]
    columns = np.array(rows).T
    assert_allclose(r_squared(columns[0], columns[2]), auroc, rtol=0, atol=0.022)
    assert_allclose(r_squared(columns[1], columns[3]), precision, rtol=0, atol=0.022)


def test_soft_metrics_paper_section_2_2_names_the_wrong_row_of_figure_1():
    """The text gives R^2 of .465 and .983 to CheXpert-Pneumothorax; by Table 1 they are VinDr's."""
    vindr, chexpert = (np.array(TABLE_1[f"{name}-Pneumothorax"][0]).T for name in ("VinDr", "CheXpert"))
    assert round(r_squared(vindr[0], vindr[2]), 3) == 0.461
    assert round(r_squared(vindr[1], vindr[3]), 3) == 0.984
    assert round(r_squared(chexpert[0], chexpert[2]), 3) == 0.917
    assert round(r_squared(chexpert[1], chexpert[3]), 3) == 0.638


def test_class_imbalance_paper_section_2_2_3_dummy_brier_score():
    """One positive and 99 negatives, all predicted 0: Brier 0.01, balanced Brier 1."""
    y, zeros = [1] + 99 * [0], np.zeros(100)
    assert_allclose(brier_score(y, zeros), 0.01, rtol=1e-12)
    assert balanced_brier(y, zeros) == 1
    assert stratified_brier(y, zeros).balanced_mean == 0.5
