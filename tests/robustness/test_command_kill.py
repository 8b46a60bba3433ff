"""A signal before changes of the file system, in every command that writes, over a target that exists.

What a command writes when it runs again, after a signal or not, has the same bytes as before, but for timings.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import softgold
from robustness.conftest import Prepared, Server
from robustness.study import CASES, COMMANDS, DASK, FIT, SEED, WRITING, Command, linked, snapshot, strays

SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
NEXT = "baseline votes.csv -o next.csv --force"
Files = dict[str, bytes]

pytestmark = pytest.mark.slow


def changed_files(now: Files, old: Files, new: Files) -> set[str]:
    """Return "old" and "new", as far as the files that differ between the two states are of them; else their names."""
    found = set()
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            states = [state for state, files in (("old", old), ("new", new)) if files.get(name) == now.get(name)]
            found |= set(states) or {f"{name} is neither"}
    return found


def moments(events: int, budget: int, seed: list[int]) -> list[tuple[int, signal.Signals]]:
    """Return every event with every signal, or as many as the budget has, at least one per signal.

    The events of a sample are spread over the whole command, one in each of as many equal spans; which one of its
    span, and with which signal, is drawn from the seed.
    """
    signals = list(SIGNALS)
    budget = max(budget, len(signals))
    if budget >= events * len(signals):
        return [(event, number) for event in range(events) for number in signals]
    random = np.random.default_rng(seed)
    edges = np.linspace(0, events, budget + 1)
    places = np.minimum(random.uniform(edges[:-1], edges[1:]).astype(int), events - 1)
    shift = int(random.integers(len(signals)))
    return [(place, signals[(k + shift) % len(signals)]) for k, place in enumerate(places.tolist())]


def test_a_sample_has_every_signal_and_every_part_of_a_command() -> None:
    for seed in range(20):
        sample = moments(40, 8, [seed])
        assert {number for _, number in sample} == set(SIGNALS)
        assert [event // 5 for event, _ in sample] == list(range(8))
    assert len(set(moments(4, 1000, [0]))) == 12


@pytest.mark.parametrize("name", WRITING)
def test_targets_are_old_or_new(
    server: Server,
    prepared: Callable[[str], Prepared],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    name: str,
) -> None:
    command, study = COMMANDS[name], prepared(name)
    assert study.new != study.old
    cases = moments(study.events, command.cases(CASES), [SEED, WRITING.index(name)])
    record_property("cases", len(cases))
    ran_again = False
    for event, number in cases:
        folder = linked(study.base, tmp_path / "case")
        ended = server.run(*command.arguments.split(), folder=folder, signal=number, event=event)
        where = f"{number.name} at event {event} of {study.events}: {ended.err}"
        assert ended.code in (SIGNALS[number], 0), where  # 0: the signal came when all was done
        assert "Traceback" not in ended.err, where
        ran_again |= check_after(server, command, folder, number, study)
        shutil.rmtree(folder)
    if not ran_again:
        folder = linked(study.base, tmp_path / "again")
        check_again(server, command, folder, study)
    assert snapshot(study.base) == study.old


def check_after(server: Server, command: Command, folder: Path, number: signal.Signals, study: Prepared) -> bool:
    """Check what a signal has left; return whether a further run has been compared with the first."""
    old, new = study.old, study.new
    left = strays(folder)
    if number != signal.SIGKILL:
        assert left == []
    if left and command.together:
        run_next(server, folder)
    now = snapshot(folder)
    assert changed_files(now, old, new) in ({"old"}, {"new"})
    if not left and now in (old, new):  # to the next command nothing has happened, or all has
        return False
    if command.once:
        server.run(*command.arguments.split(), folder=folder)
    else:
        check_again(server, command, folder, study)
    run_next(server, folder)
    assert strays(folder) == []
    return not command.once


def check_again(server: Server, command: Command, folder: Path, study: Prepared) -> None:
    """Run a command that is to write what its first run has written."""
    again = server.run(*command.arguments.split(), folder=folder, preload=command.preload)
    assert again.code == 0, again.err
    assert snapshot(folder) == study.new


def run_next(server: Server, folder: Path) -> None:
    """Run some other command that writes in the folder: it completes what was killed, and removes strays."""
    assert server.run(*NEXT.split(), folder=folder).code == 0
    (folder / "next.csv").unlink()


ON_CLUSTER = "fit votes.csv -o run --force --engine coordinate --dask local"


def cluster_moments() -> list[dict[str, int]]:
    """Return when to send signals to a fit that starts workers: the first has just been started, all have, the end."""
    early = [{"signal": number, "children": 2} for number in SIGNALS]
    if CASES < 40:
        return early
    late = [{"signal": number, "children": 3} for number in SIGNALS]
    writing = [{"signal": number, "event": event} for event, number in moments(30, 6, [SEED])]
    return [*early, *late, *writing]


@pytest.mark.parametrize(
    "moment", cluster_moments(), ids=lambda moment: " ".join(f"{k} {v:d}" for k, v in moment.items())
)
def test_a_signal_to_a_fit_on_local_workers_leaves_no_process(
    server: Server,
    prepared: Callable[[str], Prepared],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    moment: dict[str, int],
) -> None:
    study = prepared("fit")
    record_property("cases", 1)
    folder = Path(shutil.copytree(study.base, tmp_path / "case"))
    ended = server.run(*ON_CLUSTER.split(), folder=folder, preload=DASK, seconds=300, **moment)
    assert ended.code == SIGNALS[signal.Signals(moment["signal"])], ended.err
    if moment["signal"] == signal.SIGKILL:  # Python's own traceback of a worker that is left amid its start
        assert str(Path(softgold.__file__).parent) not in ended.err
    else:
        assert "Traceback" not in ended.err
    assert processes_after(ended.session, seconds=60) == []
    if "children" in moment:  # nothing was written yet
        assert snapshot(folder) == study.old
        assert strays(folder) == []
    else:
        check_after(server, Command(FIT), folder, signal.Signals(moment["signal"]), study)


def processes_after(session: int, seconds: float) -> list[str]:
    """Return the processes of a session that some seconds do not end."""
    deadline = time.monotonic() + seconds
    while (left := processes(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def processes(session: int) -> list[str]:
    """Return the command lines of the processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of_session, *_ = (path / "stat").read_text().rpartition(")")[2].split()
            if int(of_session) == session and state not in "ZX":
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended
            continue
    return found
