"""Agreement of raters on nominal labels: Krippendorff's alpha, Cohen's and Fleiss' kappa."""

from softgold.agreement.nominal import (
    Agreement,
    AlphaInterval,
    NominalLabels,
    agreement,
    alpha_interval,
    cohen_kappa,
    cohen_kappas,
    fleiss_kappa,
    krippendorff_alpha,
    krippendorff_wording,
    landis_koch,
    percent_agreement,
)
from softgold.agreement.reading import read_nominal

__all__ = [
    "Agreement",
    "AlphaInterval",
    "NominalLabels",
    "agreement",
    "alpha_interval",
    "cohen_kappa",
    "cohen_kappas",
    "fleiss_kappa",
    "krippendorff_alpha",
    "krippendorff_wording",
    "landis_koch",
    "percent_agreement",
    "read_nominal",
]
