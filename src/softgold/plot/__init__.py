"""Figures of typed results, drawn with matplotlib (`pip install 'softgold[plot]'`).

Every function takes a result and an optional matplotlib Axes, and returns the Axes with the drawing, so that titles,
limits and colours can be changed afterwards. matplotlib is imported when a function needs a new figure.

Example:
    >>> import softgold
    >>> votes = softgold.simulate(n_items=60, n_annotators=12, seed=1).votes
    >>> ax = softgold.plot.soft_labels(softgold.fit(votes, engine="coordinate"))
    >>> ax.get_xlabel()
    'soft label p'
"""

from softgold.plot.experts import expert_map
from softgold.plot.labels import annotators, soft_labels
from softgold.plot.models import ranks, reliability
from softgold.plot.planning import forecast

__all__ = ["annotators", "expert_map", "forecast", "ranks", "reliability", "soft_labels"]
