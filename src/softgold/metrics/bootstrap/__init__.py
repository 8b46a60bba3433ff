"""Bootstrap intervals and comparisons.

`plans` says what is redrawn, `rankings` and `probabilities` compute metrics of many resamples at once, `engine` draws
and evaluates, `result` summarises, and `functions` has the public calls.
"""
