"""Files, data frames and platform exports to vote tables, expert labels, ratings, model scores and soft labels."""

from softgold.readers.exports.export import Export
from softgold.readers.exports.registry import FORMAT_NAMES
from softgold.readers.importing import read_export
from softgold.readers.repeats import DuplicateRule
from softgold.readers.scores import read_scores
from softgold.readers.soft_labels import read_soft_labels
from softgold.readers.sources import TableLike
from softgold.readers.study import read_items, read_study
from softgold.readers.votes import read_experts, read_ratings, read_votes

__all__ = [
    "FORMAT_NAMES",
    "DuplicateRule",
    "Export",
    "TableLike",
    "read_experts",
    "read_export",
    "read_items",
    "read_ratings",
    "read_scores",
    "read_soft_labels",
    "read_study",
    "read_votes",
]
