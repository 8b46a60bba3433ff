"""The command line: one module a command, each of which parses, calls the library, and writes."""

from softgold.cli.app import main

__all__ = ["main"]
