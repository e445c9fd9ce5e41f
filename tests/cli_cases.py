"""What the tests of the command line share: small graphs on disk, the command in this process or in a forked one."""

import dataclasses
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from gind.cli import app

__all__ = ["TINY", "Child", "Outcome", "command", "snapshot", "write_graph", "write_molecules", "write_nodes"]

NODES = 30
TINY = "--threads 1 --quiet --set hidden=4 --set epochs=2"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    error: BaseException | None = None


def command(line: str) -> Outcome:
    """`gind LINE` in this process."""
    result = CliRunner().invoke(app, shlex.split(line), prog_name="gind")
    error = None if isinstance(result.exception, SystemExit) else result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr, error)


class Child:
    """`gind LINE` in a process forked from this one: everything is imported and compiled already.

    `prepare` runs in the child before the command. A child that hangs ends itself after a minute.
    """

    def __init__(self, line: str, log: Path, prepare: Callable[[], None] | None = None) -> None:
        self.log = log
        self.pid = os.fork()
        if self.pid == 0:
            self._run(line, prepare)
        self.status: int | None = None

    def _run(self, line: str, prepare: Callable[[], None] | None) -> None:
        code = 70
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.alarm(60)
            # pytest reads what is printed through objects and descriptors of its own
            handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(handle, number)
                setattr(sys, name, os.fdopen(number, "w", buffering=1, closefd=False))
            if prepare is not None:
                prepare()
            code = _exit_code(line)
            sys.stdout.flush()
        finally:
            os._exit(code)  # whatever happens, the child must not go on with the tests

    def wait(self) -> int:
        """The exit code, or minus the signal that ended it."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def kill_after(self, seconds: float) -> bool:
        """Kill it then; whether that was before it ended by itself."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.ended:
                return False
            time.sleep(min(left, 0.01))
        os.kill(self.pid, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    @property
    def ended(self) -> bool:
        """Whether it has."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    @property
    def text(self) -> str:
        """What it printed."""
        return self.log.read_text()


def _exit_code(line: str) -> int:
    """Run the command as the console script does."""
    try:
        app(shlex.split(line), prog_name="gind")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


def snapshot(directory: Path) -> dict[str, bytes]:
    """Every file under a directory but locks, which are empty and may stay."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def write_graph(directory: Path, *, nodes: int = NODES, width: int = 3, labels: bool = True, seed: int = 0) -> Path:
    """A ring with chords of two classes, whose first feature tells them apart a little."""
    rng = np.random.default_rng(seed)
    classes = np.arange(nodes) % 2
    x = rng.normal(size=(nodes, width)) + classes[:, None]
    rows = [
        [f"n{i}", *(["ab"[classes[i]]] if labels else []), *(f"{value:.4f}" for value in x[i])] for i in range(nodes)
    ]
    header = ["id", *(["label"] if labels else []), *(f"f{k}" for k in range(width))]
    write_nodes(directory, [header, *rows])
    edges = [(i, (i + step) % nodes) for i in range(nodes) for step in (1, 4)]
    text = "".join(f"n{a},n{b}\n" for a, b in edges)
    (directory / "edges.csv").write_text("source,target\n" + text)
    return directory


def write_nodes(directory: Path, rows: list[list[str]]) -> None:
    """nodes.csv."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "nodes.csv").write_text("".join(",".join(row) + "\n" for row in rows))


def write_molecules(root: Path, graphs: int = 24, nodes: int = 5) -> Path:
    """A tiny set of graphs under the name and in the format of MUTAG: rings of class 1, paths of class -1."""
    raw = root / "MUTAG" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    edges: list[tuple[int, int]] = []
    for graph in range(graphs):
        first = graph * nodes + 1
        ring = [(first + i, first + (i + 1) % nodes) for i in range(nodes - graph % 2)]
        edges += [pair for a, b in ring for pair in ((a, b), (b, a))]
    text = {
        "A": [f"{a}, {b}" for a, b in edges],
        "graph_indicator": [str(graph + 1) for graph in range(graphs) for _ in range(nodes)],
        "graph_labels": [str(1 - 2 * (graph % 2)) for graph in range(graphs)],
        "node_labels": [str(label) for label in rng.integers(0, 7, graphs * nodes)],
    }
    for name, lines in text.items():
        (raw / f"MUTAG_{name}.txt").write_text("\n".join(lines) + "\n")
    return root
