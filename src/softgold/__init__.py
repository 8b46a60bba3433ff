"""Soft labels with honest uncertainty from crowd votes, and evaluation that uses them."""

__version__ = "0.1.0"
