"""Words for agreement coefficients, by Landis and Koch and by Krippendorff."""

from __future__ import annotations

import math

RELIABLE = 0.8
"""Alpha from which Krippendorff calls labels reliable."""
TENTATIVE = 0.667
"""Alpha below which Krippendorff advises against any conclusion."""

_LANDIS_KOCH = ((0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"), (1.0, "almost perfect"))


def landis_koch(coefficient: float) -> str:
    """Return the word of Landis and Koch (1977) for a coefficient; an upper bound belongs to the lower word.

    >>> landis_koch(0.42), landis_koch(0.4), landis_koch(-0.1)
    ('moderate', 'fair', 'poor')
    """
    if math.isnan(coefficient):
        return "undefined"
    if coefficient < 0:
        return "poor"
    return next((name for end, name in _LANDIS_KOCH if coefficient <= end), "almost perfect")


def krippendorff_wording(alpha: float) -> str:
    """Return whether labels with this alpha are reliable (Krippendorff, 2004: 0.800 and 0.667).

    >>> krippendorff_wording(0.91), krippendorff_wording(0.7), krippendorff_wording(0.42)
    ('reliable', 'tentative conclusions only', 'not reliable')
    """
    if math.isnan(alpha):
        return "undefined"
    if alpha >= RELIABLE:
        return "reliable"
    return "tentative conclusions only" if alpha >= TENTATIVE else "not reliable"
