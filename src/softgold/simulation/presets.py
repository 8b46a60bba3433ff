"""Presets: named settings.

`cleanpatrick` has the sizes, prevalences and expert agreement that the CleanPatrick paper reports. Everything else is
the default of the two-class model, the same for its three issue types. `small` is an invented study to try things on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from softgold.checks import check_choice, check_in_range, check_positive_int
from softgold.errors import UsageError
from softgold.simulation.settings import SETTING_NAMES, SimulationSettings
from softgold.simulation.vote_models import LARGEST

Preset = Literal["cleanpatrick", "small"]

_CLEANPATRICK: Mapping[str, Any] = {
    "model": "two-class",
    "n_items": 16_577,  # images of Fitzpatrick17k (section 3.1); the paper had 15,306 of them annotated for duplicates
    "n_annotators": 933,  # medical crowd workers (section 3.2)
    "votes_per_item": 496_377 / 3 / 16_577,  # 496,377 votes over three issue types (section 3.2), in equal parts
    "vote_distribution": "long_tail",  # 10 votes on average, mostly 5 to 20, from 1 to 225 (appendix E)
    "activity_spread": 1.35,  # makes the busiest annotator give about the 15,630 votes of section 3.2
}

# Prevalences: section 4.1. Expert ability: three experts who also err at the default flat rate of 1 % then agree with
# Krippendorff's alpha 0.60, 0.91 and 0.42, as in section 3.4 (expected values here: 0.60, 0.91 and 0.42). The paper's
# shares of wrong labels (1.3, 1.3 and 8.4 %, section 3.3) are estimates of its own model and are not used here: the
# three issue types are equally hard for the crowd.
CLEANPATRICK_ISSUES: Mapping[str, Mapping[str, Any]] = {
    "off_topic": {"prevalence": 0.04, "expert_ability": 1.8},
    "near_duplicates": {"prevalence": 0.21, "expert_ability": 3.1},
    "label_errors": {"prevalence": 0.32, "expert_ability": 0.5},
}

# All numbers are choices: few enough votes for a fast fit, some random and adversarial annotators, three experts on
# some of the items, and five models, three of which err mostly on ambiguous items.
_SMALL: Mapping[str, Any] = {
    "model": "two-class",
    "n_items": 2_000,
    "n_annotators": 120,
    "prevalence": 0.25,
    "votes_per_item": 8.0,
    "vote_distribution": "long_tail",
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
        # Only the preset's own number shrinks with the items; a number from the caller is kept.
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
