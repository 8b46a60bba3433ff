"""Agreement of raters on nominal labels: Krippendorff's alpha, Cohen's and Fleiss' kappa."""

from softgold.agreement.kappa import cohen_kappa, cohen_kappas
from softgold.agreement.labels import NominalLabels
from softgold.agreement.nominal import (
    Agreement,
    AlphaInterval,
    agreement,
    alpha_interval,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from softgold.agreement.reading import read_nominal
from softgold.agreement.wording import krippendorff_wording, landis_koch

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
