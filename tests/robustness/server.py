"""A process that imports softgold once and runs each request in a fork of itself, with limits and signals.

Requests and answers are lines of JSON on standard input and output. A request has `arguments` (a command line) or
`code` (Python), and may have:
    folder              working directory; events that change the file system below it are counted
    signal, event       send this signal to the process itself just before its n-th event, from 0
    seconds, memory     limits: wall-clock time, and address space in bytes
    without_exchange    pretend that the system cannot exchange two names
    stdout, stderr      paths to write to instead of capturing, or "closed"
    environment         variables to set
    swap                two folders: count reads of files below the first, and before the n-th let another process, as a
                        writer of softgold would, exchange the folders
    preload             modules to import in the server itself, before the fork
    children            send the signal when the process has so many child processes
An answer has `code` (exit code, or minus the signal), `events`, `out`, `err`, `timed_out`, `peak` (bytes) and
`session`, the number that all processes of the request have in common. With the argument "light" only what
writes files is imported beforehand: forks are cheap, for requests that need no command.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

EVENTS = {
    "open",
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "os.utime",
}
MODULES = (
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "scipy.optimize",
    "pyarrow.dataset",
    "sklearn.model_selection",
    "xml.etree.ElementTree",
    "openpyxl",
    "rich.table",
    "jinja2",
    "encodings.cp437",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "email.parser",
    "pandas.core.arrays.arrow.extension_types",
    "pandas.core.methods.to_dict",
    "pandas.io.formats.csvs",
    "softgold.cli.app",
    "softgold.cli.evaluation_tables",
    "softgold.cli.studies",
    "softgold.readers",
    "softgold.evaluation",
    "softgold.experts",
    "softgold.experts.studies",
    "softgold.report",
    "softgold.simulation",
    "softgold.models.baselines",
    "softgold.models.tasks",
    "softgold.models.crowd.models",
    "softgold.scale",
    "softgold.runs.checkpoint",
    "softgold.runs.limits",
    "softgold.imaging.duplicates",
    "softgold.imaging.segmentation",
    "softgold.imaging.detection.coco",
    "softgold.imaging.detection.convergence",
    "softgold.imaging.detection.files",
    "softgold.imaging.detection.merges",
    "softgold.imaging.detection.variation",
)
LIGHT_MODULES = ("fcntl", "ctypes", "numpy", "softgold.output", "softgold.output.rebuild")


def watch(folder: str, events: list[int], number: int | None, event: int | None) -> None:
    """Count the file-system events below a folder from now on, and send a signal before one of them."""

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if name not in EVENTS or (name == "open" and not writes(arguments)):
            return
        if not any(concerns(argument) for argument in arguments[:2]):
            return
        events[0] += 1
        if event is not None and events[0] == event + 1:
            os.kill(os.getpid(), number or signal.SIGKILL)

    def writes(arguments: tuple[Any, ...]) -> bool:
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    def concerns(argument: Any) -> bool:
        if isinstance(argument, bytes):
            argument = os.fsdecode(argument)
        if not isinstance(argument, str | os.PathLike):
            return False
        return os.path.abspath(argument).startswith(folder)  # noqa: PTH100 - resolving would be an event itself

    sys.addaudithook(hook)


def watch_reads(first: str, second: str, events: list[int], event: int | None) -> None:
    """Count the files below a folder that are opened for reading, and exchange the folder before one of them."""

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if name != "open" or not isinstance(arguments[0], str | os.PathLike):
            return
        if not os.path.abspath(arguments[0]).startswith(f"{first}/"):  # noqa: PTH100
            return
        events[0] += 1
        if event is not None and events[0] == event + 1:
            exchange_soon(first, second)

    sys.addaudithook(hook)


def exchange_soon(first: str, second: str) -> None:
    """Let a fork exchange two folders as soon as nobody has locked them; go on when it has, or has to wait for that."""
    import fcntl

    from softgold.output.system import exchange

    news, teller = os.pipe()
    if os.fork() == 0:
        os.dup2(teller, 3)
        os.closerange(4, 256)  # a lock lasts until every copy of its descriptor is closed
        locks = [os.open(folder, os.O_RDONLY) for folder in (first, second)]
        for lock in locks:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.write(3, b"waiting")
                fcntl.flock(lock, fcntl.LOCK_EX)
        exchange(Path(first), Path(second))
        os._exit(0)
    os.close(teller)
    os.read(news, 1)  # nothing, once the fork has ended
    os.close(news)


def run(request: dict[str, Any]) -> int:
    """Run one request in this process, a fork of the server, and return its exit code."""
    if "arguments" in request:
        from softgold.cli.app import main

        return main(request["arguments"])
    exec(compile(request["code"], "request", "exec"), {"__name__": "request"})
    return 0


def child(request: dict[str, Any], out: str, err: str, counted: str) -> None:
    """Do the request and end the process."""
    os.setsid()
    code, events = 1, [0]
    folder = os.path.realpath(request["folder"])
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, stop if "code" in request else signal.SIG_DFL)
        redirect(1, request.get("stdout", out))
        redirect(2, request.get("stderr", err))
        os.environ.update(request.get("environment", {}))
        os.chdir(folder)
        if request.get("without_exchange"):
            import softgold.output.system

            softgold.output.system._system_call = lambda: None  # type: ignore[assignment]
        if "memory" in request:
            limit = size() + request["memory"]
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if "swap" in request:
            first, second = (os.path.join(folder, name) for name in request["swap"])  # noqa: PTH118
            watch_reads(first, second, events, request.get("event"))
        else:
            watch(folder, events, request.get("signal"), request.get("event"))
        code = run(request)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    try:
        Path(counted).write_text(str(events[0]))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        pass
    os._exit(code)


def stop(number: int, _frame: object) -> None:
    """End as the commands do when they are asked to."""
    raise SystemExit(128 + number)


def size() -> int:
    """Return the address space of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def redirect(descriptor: int, target: str) -> None:
    if target == "closed":
        os.close(descriptor)
        return
    opened = os.open(target, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def serve(request: dict[str, Any], folder: str) -> dict[str, Any]:
    """Fork, wait until the fork has ended or its time is over, and tell what came of it."""
    out, err, counted = (os.path.join(folder, name) for name in ("out", "err", "counted"))  # noqa: PTH118
    for path in (out, err, counted):
        Path(path).write_bytes(b"")
    for name in request.get("preload", ()):
        __import__(name)
    pid = os.fork()
    if pid == 0:
        child(request, out, err, counted)
    deadline = time.monotonic() + request.get("seconds", 60)
    awaited = request.get("children")
    timed_out = False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            timed_out = True
            os.kill(pid, signal.SIGKILL)
            deadline = float("inf")
        if awaited is not None and count_children(pid) >= awaited:
            os.kill(pid, request["signal"])
            awaited = None
        time.sleep(0.002)
    text = Path(counted).read_text()
    return {
        "code": os.waitstatus_to_exitcode(status),
        "events": int(text) if text else None,
        "out": Path(out).read_bytes().decode("utf-8", "surrogateescape"),
        "err": Path(err).read_bytes().decode("utf-8", "surrogateescape"),
        "timed_out": timed_out,
        "peak": usage.ru_maxrss * 1024,
        "session": pid,
    }


def count_children(pid: int) -> int:
    """Return how many child processes the threads of a process have."""
    try:
        return sum(len(path.read_text().split()) for path in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:  # it is ending
        return 0


def warm_up() -> None:
    """Import what commands import when they run."""
    from softgold.cli.app import COMMANDS, load_command, main
    from softgold.readers.exports.registry import FORMAT_NAMES, find_format

    redirect(1, os.devnull)
    main(["--version"])
    for name in COMMANDS:
        load_command(name)
    for name in FORMAT_NAMES:
        find_format(name)


def main() -> None:
    """Import what the commands need, and answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    light = "light" in sys.argv
    for name in LIGHT_MODULES if light else MODULES:
        __import__(name)
    if not light:
        warm_up()
    gc.collect()
    gc.freeze()  # forks share the memory
    with tempfile.TemporaryDirectory() as folder:
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(serve(json.loads(line), folder)), file=answers, flush=True)


if __name__ == "__main__":
    main()
