"""Cases of a segmentation study: class probabilities of several samples, and the masks of several raters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.errors import InputError
from softgold.imaging.segmentation.entropy import as_distributions
from softgold.readers.arrays import read_array, read_arrays
from softgold.readers.base import web_address
from softgold.readers.cells import code_ids
from softgold.readers.columns import Role, find_column
from softgold.readers.sources import TableLike, open_source

FloatArray = NDArray[np.float64]
Split = Literal["validation", "iid", "ood"]

SPLITS: tuple[Split, ...] = get_args(Split)
CASE: Role = ("case", "image", "item")
SPLIT: Role = ("split", "set")
PROBABILITIES = "probabilities"
MASKS = "masks"


@dataclass(frozen=True, eq=False)
class Case:
    """One image of a study.

    Attributes:
        probabilities: Class probabilities of S samples, shape (S, ..., C): the classes come last.
        masks: Class of each pixel by R raters, shape (R, ...).
    """

    probabilities: FloatArray
    masks: NDArray[np.int64]

    @classmethod
    def of(cls, probabilities: ArrayLike, masks: ArrayLike) -> Case:
        """Check a case as it is stored: probabilities of shape (S, C, ...), masks of shape (R, ...).

        >>> case = Case.of(np.full((2, 3, 4, 5), 1 / 3), np.zeros((1, 4, 5)))
        >>> case.probabilities.shape, case.n_classes
        ((2, 4, 5, 3), 3)
        """
        softmax = np.asarray(probabilities)
        if softmax.ndim < 3:
            raise InputError(f"probabilities must have shape (samples, classes, space ...), got {softmax.shape}")
        distributions = as_distributions(np.moveaxis(softmax, 1, -1), "probabilities")
        labels = np.asarray(masks)
        if labels.ndim < 1 or not len(labels) or labels.shape[1:] != distributions.shape[1:-1]:
            raise InputError(
                f"masks must have shape (raters, space ...) with the space {distributions.shape[1:-1]} of the "
                f"probabilities, got {labels.shape}"
            )
        return cls(distributions, _as_classes(labels, distributions.shape[-1]))

    @property
    def n_classes(self) -> int:
        """Number of classes C, the background included."""
        return int(self.probabilities.shape[-1])

    @property
    def prediction(self) -> NDArray[np.int64]:
        """Most probable class of the mean over the samples, shape (...)."""
        return np.asarray(self.probabilities.mean(axis=0).argmax(axis=-1))


@dataclass(frozen=True)
class CaseFile:
    """Where a case is stored.

    Attributes:
        name: Name of the case, that of its file without the suffix.
        split: `validation` (for thresholds and calibration), `iid`, or `ood`.
        probabilities: The file with the probabilities.
        masks: The file with the masks; the same file for an `.npz`.
    """

    name: str
    split: Split
    probabilities: Path
    masks: Path

    def load(self) -> Case:
        """Read and check the case; an error names the file."""
        try:
            if self.masks == self.probabilities:
                arrays = read_arrays(self.probabilities)
                return Case.of(_named(arrays, PROBABILITIES), _named(arrays, MASKS))
            return Case.of(read_array(self.probabilities), read_array(self.masks))
        except InputError as error:
            raise InputError(f"{self.probabilities}: {error}") from None


def case_files(folder: str | os.PathLike[str], splits: TableLike | None = None) -> list[CaseFile]:
    """Find the cases of a folder: `NAME.npz` with `probabilities` and `masks`, or `NAME.npy` and `NAME_masks.npy`.

    Args:
        folder: The folder.
        splits: Table `case, split` that says of each case whether it is `validation`, `iid` or `ood`; all cases are
            `iid` if it is left out.

    Returns:
        The cases, sorted by name.
    """
    directory = Path(folder)
    if not directory.is_dir():
        raise InputError(f"{web_address(folder) or folder} is not a folder of cases")
    files = dict(sorted(_find(directory)))
    if not files:
        raise InputError(
            f"{folder} has no cases: NAME.npz with probabilities and masks, or NAME.npy and NAME_masks.npy"
        )
    known = dict.fromkeys(files, "iid") if splits is None else _read_splits(splits, files)
    return [CaseFile(name, _as_split(known[name]), *files[name]) for name in files]


def _find(directory: Path) -> Iterator[tuple[str, tuple[Path, Path]]]:
    seen: set[str] = set()
    for path in sorted(directory.glob("*.np[yz]")):
        if path.suffix == ".npy" and path.stem.endswith("_masks"):
            continue
        if path.stem in seen:
            raise InputError(f"{directory} has the case {path.stem!r} twice, as .npy and as .npz")
        seen.add(path.stem)
        masks = path if path.suffix == ".npz" else path.with_name(f"{path.stem}_masks.npy")
        if not masks.is_file():
            raise InputError(f"{path} has no masks of raters: {masks.name} is not there")
        yield path.stem, (path, masks)


def _read_splits(splits: TableLike, files: Mapping[str, Any]) -> dict[str, str]:
    source = open_source(splits)
    positions = [find_column(source, role, is_option=False) for role in (CASE, SPLIT)]
    columns = source.load(positions)
    names, kinds = (code_ids(source, at, cells) for at, cells in zip(positions, columns, strict=True))
    known: dict[str, str] = {}
    for row, (name, kind) in enumerate(zip(names.index()[names.codes], kinds.index()[kinds.codes], strict=True)):
        if kind not in SPLITS or name in known or name not in files:
            problem = _split_problem(name, kind, known, files)
            raise InputError(f"{source.name}, {source.where(row)}: {problem}")
        known[name] = kind
    absent = [name for name in files if name not in known]
    if absent:
        raise InputError(f"{source.name} does not say the split of the case {absent[0]!r} (and {len(absent) - 1} more)")
    return known


def _split_problem(name: str, kind: str, known: Mapping[str, str], files: Mapping[str, Any]) -> str:
    if kind not in SPLITS:
        return f"a split must be one of {', '.join(SPLITS)}, got {kind!r}"
    return f"the case {name!r} is duplicated" if name in known else f"there is no file of the case {name!r}"


def _as_split(text: str) -> Split:
    return next(split for split in SPLITS if split == text)


def _named(arrays: Mapping[str, Any], name: str) -> Any:
    if name not in arrays:
        raise InputError(f"there is no array {name!r}, only {', '.join(arrays) or 'none'}")
    return arrays[name]


def _as_classes(labels: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    if labels.dtype.kind not in "biuf":
        raise InputError(f"masks must be numbers, got {labels.dtype}")
    fine = np.isin(labels, np.arange(n_classes))
    if not fine.all():
        where = tuple(np.argwhere(~fine)[0].tolist())
        raise InputError(f"masks must be classes 0 to {n_classes - 1}, got {labels[where]} at position {where}")
    return labels.astype(np.int64)


def split_of(files: Sequence[CaseFile], *splits: Split) -> list[CaseFile]:
    """Return the cases of these splits."""
    return [file for file in files if file.split in splits]
