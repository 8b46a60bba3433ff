"""Run the command line: `python -m softgold`."""

from softgold.cli import main

raise SystemExit(main())
