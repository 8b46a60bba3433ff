"""Exports of annotation platforms: which one a file is, and the answers in it."""

from softgold.readers.exports.base import ReadOptions
from softgold.readers.exports.export import Export, GoldLabel
from softgold.readers.exports.registry import FORMAT_NAMES

__all__ = ["FORMAT_NAMES", "Export", "GoldLabel", "ReadOptions"]
