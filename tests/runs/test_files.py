"""Arrays on disk: numbers only, and nothing beside what was given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from softgold.runs.files import read_arrays, write_arrays


def test_the_arrays_come_back_and_no_others(tmp_path: Path) -> None:
    given = {"p": np.array([0.25, 0.5]), "count": np.array(3)}
    write_arrays(tmp_path / "a.npz", given)
    found = read_arrays(tmp_path / "a.npz")
    assert {name: array.tolist() for name, array in found.items()} == {"p": [0.25, 0.5], "count": 3}


def test_objects_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a\.npz holds numbers only"):
        write_arrays(tmp_path / "a.npz", {"x": np.array([{}], dtype=object)})
    assert list(tmp_path.iterdir()) == []
