"""How long `softgold --help` takes, beside `python -c "import typer, rich"`, in one run.

python scripts/bench/startup.py --rounds 20
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

BASE = (sys.executable, "-c", "import typer, rich")
HELP = (sys.executable, "-c", "import sys; from softgold.cli import main; sys.exit(main(['--help']))")


def seconds(command: Sequence[str]) -> float:
    """Return how long a process takes from start to end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Time both in turn, so that a busy machine slows both, and compare the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    base, ours = np.median([(seconds(BASE), seconds(HELP)) for _ in range(rounds)], axis=0)
    result = {
        "import_typer_rich_seconds": round(float(base), 4),
        "softgold_help_seconds": round(float(ours), 4),
        "ratio": round(float(ours / base), 3),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
