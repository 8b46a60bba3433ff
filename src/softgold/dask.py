"""Votes on a Dask cluster; needs the extra `dask`.

import softgold.dask as sgd

fit = sgd.fit("votes/*.parquet", client)
fit.annotators()    # a pandas frame
fit.soft_labels()   # a Dask frame
fit.to_local()      # what softgold.fit gives
"""

from __future__ import annotations

from softgold.scale.dask import DaskFit, fit

__all__ = ["DaskFit", "fit"]
