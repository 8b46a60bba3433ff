"""A signal before every change of the file system, in every command that writes, over a target that exists."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robustness.conftest import Server
from robustness.study import CASES, COMMANDS, SEED, WRITING, Command, snapshot, strays

SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
NEXT = "baseline votes.csv -o next.csv --force"

pytestmark = pytest.mark.slow


def changed_files(folder: Path, old: dict[str, bytes], new: dict[str, bytes]) -> set[str]:
    """Return "old" and "new", as far as the files that differ between the two states are of them; else their names."""
    now = snapshot(folder)
    found = set()
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            states = [state for state, files in (("old", old), ("new", new)) if files.get(name) == now.get(name)]
            found |= set(states) or {f"{name} is neither"}
    return found


def pairs() -> list[tuple[str, signal.Signals]]:
    """Return commands with signals; of commands with a share of a small budget, each with one signal only."""
    found = []
    for at, name in enumerate(WRITING):
        few = CASES < 40 and COMMANDS[name].share > 1
        found += [(name, number) for k, number in enumerate(SIGNALS) if not few or k == at % len(SIGNALS)]
    return found


@pytest.mark.parametrize(("name", "number"), pairs())
def test_targets_are_old_or_new(
    server: Server,
    copies: Callable[[], Path],
    record_property: Callable[[str, object], None],
    name: str,
    number: signal.Signals,
) -> None:
    command = COMMANDS[name]
    base = copies()
    for line in command.before:
        assert server.run(*line.split(), folder=base).code == 0
    old = snapshot(base)
    whole = Path(shutil.copytree(base, base.with_name("whole")))
    done = server.run(*command.arguments.split(), folder=whole, preload=command.preload)
    assert done.code == 0, done.err
    assert done.events is not None
    new = snapshot(whole)
    assert new != old
    events = chosen(done.events, command.cases(CASES))
    record_property("cases", len(events))
    for event in events:
        folder = Path(shutil.copytree(base, base.with_name("case")))
        ended = server.run(*command.arguments.split(), folder=folder, signal=number, event=event)
        assert ended.code in (SIGNALS[number], 0), ended.err  # 0: the signal came when all was done
        assert "Traceback" not in ended.err
        check_after(server, command, folder, number, old, new)
        shutil.rmtree(folder)


def chosen(events: int, cases: int) -> list[int]:
    """Return all events, or a sample of them if the budget is smaller."""
    if events <= cases:
        return list(range(events))
    return sorted(np.random.default_rng(SEED).choice(events, cases, replace=False).tolist())


def check_after(
    server: Server,
    command: Command,
    folder: Path,
    number: signal.Signals,
    old: dict[str, bytes],
    new: dict[str, bytes],
) -> None:
    if number == signal.SIGKILL and command.together:
        assert server.run(*NEXT.split(), folder=folder).code == 0
        (folder / "next.csv").unlink()
    assert changed_files(folder, old, new) in ({"old"}, {"new"})
    if number != signal.SIGKILL:
        assert strays(folder) == []
    again = server.run(*command.arguments.split(), folder=folder)
    if not command.once:
        assert again.code == 0, again.err
        assert changed_files(folder, old, new) == {"new"}
    assert server.run(*NEXT.split(), folder=folder).code == 0
    assert strays(folder) == []
