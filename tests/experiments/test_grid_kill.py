"""A grid that is killed: its processes end with it, and the next one does what is left, and only that."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from gind.experiments.grid import read_sheet, run_grid

if __name__ == "__main__":
    here = Path(sys.argv[1])
    for finished in run_grid(read_sheet(here / "sheet.toml"), here / "results", here / sys.argv[2], jobs=2):
        print(finished.cell.place, "skipped" if finished.skipped else finished.error or "done", flush=True)
"""
SHEET = """
title = "a short and a long training"
[[cells]]
datasets = ["wine"]
models = ["mlp"]
splits = "0"
set = { epochs = 2 }
[[cells]]
datasets = ["karate"]
models = ["mlp"]
splits = "0"
set = { epochs = 100000, patience = 0 }
"""


def children(pid: int) -> list[int]:
    """All descendants."""
    own = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [n for child in map(int, own) for n in (child, *children(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_killed_it_leaves_no_process_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "sheet.toml").write_text(SHEET)
    (tmp_path / "grid.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "grid.py"), str(tmp_path)]
    with subprocess.Popen([*command, "work"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["wine/mlp/0-0", "done"]
        report = tmp_path / "results" / "sheet" / "wine" / "mlp" / "0-0" / "report.json"
        before = report.stat().st_mtime_ns
        workers = children(process.pid)
        assert len(workers) >= 2
        os.kill(process.pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, workers))

    (tmp_path / "sheet.toml").write_text(SHEET.replace("100000", "3"))
    again = subprocess.run([*command, "other"], capture_output=True, text=True, timeout=300, check=True)
    ended = dict(line.split(maxsplit=1) for line in again.stdout.splitlines())
    assert ended == {"wine/mlp/0-0": "skipped", "karate/mlp/0-0": "done"}
    assert report.stat().st_mtime_ns == before
