"""A grid or one of its processes that is killed: what is lost is that alone, and the next grid does what is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Child, command

from gind.experiments import Spec, grid, run, worker
from gind.experiments.grid import run_grid
from gind.experiments.sheet import Cell, Sheet
from gind.train import load_tensors

PROGRAM = """
import sys
from pathlib import Path
from gind.experiments.grid import run_grid
from gind.experiments.sheet import read_sheet

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


def kill(process: "subprocess.Popen[Any]") -> None:
    """Kill it, and wait until its children have ended."""
    workers = children(process.pid)
    assert workers
    os.kill(process.pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, workers))


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
        assert len(children(process.pid)) >= 2
        kill(process)
    (tmp_path / "sheet.toml").write_text(SHEET.replace("100000", "3"))
    again = subprocess.run([*command, "other"], capture_output=True, text=True, timeout=300, check=True)
    ended = dict(line.split(maxsplit=1) for line in again.stdout.splitlines())
    assert ended == {"wine/mlp/0-0": "skipped", "karate/mlp/0-0": "done"}
    assert report.stat().st_mtime_ns == before


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_what_was_killed_within_a_training_goes_on_to_the_same_end(tmp_path: Path) -> None:
    epochs = 1500
    keys = f"set = {{ epochs = {epochs}, patience = 0 }}"
    sheet = f'[[cells]]\ndatasets = ["karate"]\nmodels = ["mlp"]\nsplits = "0"\n{keys}\n'
    (tmp_path / "sheet.toml").write_text(sheet)
    (tmp_path / "grid.py").write_text(PROGRAM)
    program = [sys.executable, str(tmp_path / "grid.py"), str(tmp_path)]
    place = Path("sheet/karate/mlp/0-0")
    metrics, report = tmp_path / "work" / place / "metrics.jsonl", tmp_path / "results" / place / "report.json"
    with subprocess.Popen([*program, "work"], stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not metrics.exists() or metrics.read_text().count("\n") < 30:
            assert time.monotonic() < end
            time.sleep(0.005)
        kill(process)
    saved, _ = load_tensors(metrics.with_name("checkpoint.safetensors"), "checkpoint")
    there = len(saved["history"])
    assert 10 <= there < epochs
    assert not report.exists()
    seconds = [json.loads(line)["seconds"] for line in metrics.read_text().splitlines()[:there]]

    subprocess.run([*program, "work"], capture_output=True, timeout=300, check=True)
    went_on = json.loads(report.read_text())
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, epochs + 1))
    assert [line["seconds"] for line in lines[:there]] == seconds, "these epochs were not trained again"
    report.unlink()
    subprocess.run([*program, "anew"], capture_output=True, timeout=300, check=True)
    whole = json.loads(report.read_text())
    for key in ("test", "validation", "training"):
        assert went_on[key] == whole[key], key


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_is_killed_is_one_cell_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    def die(spec: Spec, *arguments: Any, **options: Any) -> Any:
        if spec.split in (1, 4):
            os.kill(os.getpid(), signal.SIGKILL)
        return run(spec, *arguments, **options)

    monkeypatch.setattr(worker, "START", "fork")  # quick, and takes our change along
    monkeypatch.setattr(grid, "run", die)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sheet.toml").write_text(
        '[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0-4"\nset = { epochs = 2 }\n'
    )
    outcome = command(f"reproduce sheet.toml --jobs {jobs}")
    assert outcome.code == 1, outcome
    assert "3 done, 0 were there, 2 failed" in outcome.stdout
    failed = [line.split()[1] for line in outcome.stdout.splitlines() if "was killed. Out of memory?" in line]
    assert sorted(failed) == ["wine/mlp/1-0", "wine/mlp/4-0"]
    monkeypatch.setattr(grid, "run", run)
    outcome = command(f"reproduce sheet.toml --jobs {jobs}")
    assert outcome.code == 0, outcome
    assert "2 done, 3 were there, 0 failed" in outcome.stdout


def test_a_process_that_ends_otherwise_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "START", "fork")
    cells = (Cell("wine", "mlp", 0), Cell("wine", "mlp", 1))

    def leave(spec: Spec, *_: Any, **__: Any) -> Any:
        os._exit(3) if spec.split else os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(grid, "run", leave)
    ended = {done.cell: done.error for done in run_grid(Sheet("s", "s", cells), tmp_path / "results", tmp_path)}
    assert ended == {cells[0]: "its process was ended by signal 15", cells[1]: "its process ended with status 3"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_the_epochs_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    monkeypatch.setattr(worker, "START", "fork")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sheet.toml").write_text(
        '[[cells]]\ndatasets = ["karate"]\nmodels = ["mlp"]\nsplits = "0-3"\nset = { epochs = 100000, patience = 0 }\n'
    )
    child = Child(f"reproduce sheet.toml --jobs {jobs}", tmp_path / "log", os.setpgrp)
    metrics = [tmp_path / f"runs/sheet/karate/mlp/{split}-0/metrics.jsonl" for split in range(jobs)]
    end = time.monotonic() + 60
    while not all(path.exists() and path.read_text().count("\n") > 2 for path in metrics):
        assert time.monotonic() < end, child.text
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    assert child.wait() not in (0, -signal.SIGALRM)
    assert "Traceback" not in child.text
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
    assert len(list((tmp_path / "runs").rglob("metrics.jsonl"))) == jobs
    for path in metrics:
        epochs = [json.loads(line)["epoch"] for line in path.read_text().splitlines()]
        saved, _ = load_tensors(path.with_name("checkpoint.safetensors"), "checkpoint")
        assert len(saved["history"]) == epochs[-1]
