"""Settings for studies that people know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from softgold.checks import check_choice, check_in_range, check_positive_int
from softgold.errors import UsageError
from softgold.simulation.settings import LARGEST, SETTING_NAMES, SimulationSettings

__all__ = ["CLEANPATRICK_ISSUES", "Preset", "preset_settings"]

Preset = Literal["cleanpatrick", "small"]

# Sizes, vote counts and prevalences are those that the CleanPatrick paper reports (sections 3.2 and 4.1, appendix E).
# It says of its annotators that they differ widely and that some may be adversarial, without figures: here one helpful
# annotator in four has less than half the average ability, and one annotator in twelve is no help. All three thresholds
# that its experts set are well above 0.5: the crowd flags too much, here because clean items look doubtful more often
# than faulty ones do (positive_ease).
_CLEANPATRICK: Mapping[str, Any] = {
    "n_items": 16_577,
    "n_annotators": 933,
    "votes_per_item": 496_377 / 3 / 16_577,
    "vote_distribution": "long_tail",
    "activity_spread": 1.35,
    "ability_mean": 0.7,
    "ability_spread": 1.2,
    "adversarial_share": 0.03,
    "random_share": 0.05,
    "positive_ease": 2.5,
    "expert_errors": (0.006, 0.010, 0.014),
    "model_aurocs": (0.93, 0.91, 0.85, 0.77, 0.64),
    "model_ambiguity": (0.0, 1.0, 1.0, 0.5, 0.5),
}

# The paper estimates that 1.3 % of the labels are wrong on each of the first two issue types and 8.4 % on the third
# (section 3.3): two easy ones that differ in prevalence alone, and a hard one. Its published recipe, run on votes of
# this preset, estimates 4 to 5 % and 9 %: the easy ones are harder here, so that ways of aggregating can be told apart.
# Its three experts agree with alpha 0.60 (0.20 - 0.85), 0.91 and 0.42 in this order (section 3.4): nearly of one mind
# on the first two, with an alpha that suffers from few positives on the first, and divided on label errors. With b of
# the sizes below, an ability of 100 leaves hardly more than the flat errors, and one of 1.6 makes an expert little
# better than a good annotator.
_EASY: Mapping[str, Any] = {"difficulty_scale": 3.0, "expert_ability": 100.0}
CLEANPATRICK_ISSUES: Mapping[str, Mapping[str, Any]] = {
    "off_topic": {"prevalence": 0.04, **_EASY},
    "near_duplicates": {"prevalence": 0.21, **_EASY},
    "label_errors": {"prevalence": 0.32, "difficulty_scale": 1.1, "expert_ability": 1.6},
}

_SMALL: Mapping[str, Any] = {
    "n_items": 2_000,
    "n_annotators": 120,
    "prevalence": 0.25,
    "votes_per_item": 8.0,
    "vote_distribution": "long_tail",
    "difficulty_scale": 2.0,
    "positive_ease": 1.5,
    "ability_mean": 0.7,
    "ability_spread": 1.2,
    "adversarial_share": 0.03,
    "random_share": 0.05,
    "activity_spread": 1.2,
    "expert_errors": (0.01, 0.015, 0.02),
    "expert_ability": 6.0,
    "n_expert_items": 400,
    "model_aurocs": (0.93, 0.91, 0.855, 0.80, 0.75),
    "model_ambiguity": (0.0, 1.0, 1.0, 0.0, 1.0),
}


def preset_settings(
    preset: Preset | None, *, issue: str | None = None, scale: float = 1.0, **changes: Any
) -> SimulationSettings:
    """Return the settings of a preset with some of them changed.

    Example:
        >>> preset_settings("cleanpatrick", issue="label_errors", scale=10, seed=4).n_items
        165770
    """
    unknown = sorted(set(changes) - set(SETTING_NAMES))
    if unknown:
        raise UsageError(f"simulate has no setting {unknown[0]!r}; it has {', '.join(SETTING_NAMES)}")
    check_in_range(scale, 0, LARGEST, "scale", ends="open")
    values = _preset_values(preset, issue)
    n_items = changes.get("n_items", values.get("n_items", SimulationSettings.n_items))
    if scale != 1:
        n_items = round(check_positive_int(n_items, "n_items") * scale)
    if "n_expert_items" in values:
        # The preset's number is for its own size; a number that the caller gave is taken at its word.
        values["n_expert_items"] = min(values["n_expert_items"], n_items)
    return SimulationSettings(**{**values, **changes, "n_items": n_items})


def _preset_values(preset: Preset | None, issue: str | None) -> dict[str, Any]:
    if preset is None:
        return {"issue": issue or ""}
    check_choice(preset, get_args(Preset), "preset")
    if preset == "small":
        return {**_SMALL, "issue": issue or ""}
    issue = "near_duplicates" if issue is None else issue
    check_choice(issue, tuple(CLEANPATRICK_ISSUES), "issue")
    return {**_CLEANPATRICK, **CLEANPATRICK_ISSUES[issue], "issue": issue}
