"""A training that is killed at any moment and resumed ends with the same bits as one that was left alone."""

import contextlib
import functools
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Child, command, write_graph

import gind.train.checkpoint
import gind.train.loop
import gind.train.state
from gind.train import load_tensors

EPOCHS = 18
LINE = (
    f"train graph --threads 1 --set epochs={EPOCHS} --set hidden=8 --set dropout=0.5 --set diffusion_dropout=0.2 "
    "--set stop.tol=1e-2 --set schedule=cosine --out {out} --checkpoint-every {every}"
)
# a model without equilibria, which needs no kernels and no time
QUICK = "train graph --threads 1 --quiet --model mlp --checkpoint-every 1 --set patience=0"
KILLS = 12  # of each test that kills at random


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with a graph, and with the run `whole` that nobody disturbed."""
    directory, before = tmp_path_factory.mktemp("kill"), Path.cwd()
    write_graph(directory / "graph")
    os.chdir(directory)
    outcome = command(line("whole"))
    assert outcome.code == 0, outcome
    yield directory
    os.chdir(before)


def line(out: str, every: int = 1, more: str = "") -> str:
    return f"{LINE.format(out=out, every=every)} {more}"


def check_same(run: Path, whole: Path) -> None:
    """Same weights, same losses, same report, and nothing else left behind."""
    found = {path.name for path in run.iterdir()}
    names = {"config.toml", "weights.safetensors", "report.json", "metrics.jsonl", "checkpoint.safetensors", ".lock"}
    assert found == names, found ^ names
    assert (run / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    assert (run / "config.toml").read_bytes() == (whole / "config.toml").read_bytes()
    ours, theirs = metrics(run), metrics(whole)
    assert [record["epoch"] for record in ours] == list(range(1, len(theirs) + 1))
    assert [without_time(record) for record in ours] == [without_time(record) for record in theirs]
    assert without_time(report(run)) == without_time(report(whole))


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]


def report(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "report.json").read_text())
    return content


def without_time(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "seconds"}


def epochs_saved(run: Path) -> int:
    path = run / "checkpoint.safetensors"
    return len(load_tensors(path, "checkpoint")[0]["history"]) if path.exists() else 0


def check_readable(run: Path, every: int) -> None:
    """After a kill no file is broken, and at most `every` epochs are lost."""
    done = 0
    for path in run.glob("[!.]*") if run.exists() else ():
        if path.suffix == ".safetensors":
            assert load_tensors(path, path.stem)[0]
        elif path.name == "metrics.jsonl":
            whole, _, _ = path.read_text().rpartition("\n")  # only the last line can be cut
            records = [json.loads(row) for row in whole.splitlines()]
            assert [record["epoch"] for record in records] == list(range(1, len(records) + 1))
            done = len(records)
        elif path.name == "report.json":
            assert json.loads(path.read_text())["test"]
        else:
            assert path.name == "config.toml"
            assert "[trained]" in path.read_text()
    assert done - epochs_saved(run) <= every


@pytest.mark.parametrize("every", [1, 3])
def test_random_kills(place: Path, every: int) -> None:
    """Campaigns of kills at random moments, each until the training has ended, until enough of them have landed."""
    rng = random.Random(every)
    start = time.monotonic()
    assert Child(line(f"timed-{every}", every), place / "log").wait() == 0
    life = time.monotonic() - start
    kills, longest, runs = 0, 0, 0
    while kills < KILLS:
        runs += 1
        run = place / f"random-{every}-{runs}"
        for attempt in range(100):
            child = Child(line(run.name, every, "--resume"), place / "log")
            # later attempts wait longer: a slow machine must not keep the training from getting anywhere
            if not child.kill_after(rng.uniform(0, life * (0.25 + attempt / 20))):
                assert child.wait() == 0, child.text
                break
            kills += 1
            longest = max(longest, epochs_saved(run))
            check_readable(run, every)
        check_same(run, place / "whole")
    assert longest > 0


def test_kill_of_a_real_process(place: Path) -> None:
    """As a user would: the console script, killed in the middle, then resumed by the directory alone."""
    options = f"{QUICK} --set epochs=80 --out"
    script = Path(sys.executable).with_name("gind")
    run = place / "real"
    process = subprocess.Popen([script, *shlex.split(f"{options} real")], cwd=place, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: epochs_saved(run) >= 3 or process.poll() is not None)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    check_readable(run, 1)
    assert 3 <= epochs_saved(run) < 80
    assert command("train --threads 1 --quiet --resume --out real").code == 0
    assert command(f"{options} undisturbed").code == 0
    check_same(run, place / "undisturbed")


def test_kill_in_the_middle_of_a_large_file(place: Path) -> None:
    """Half a checkpoint of 16 MB is on the disk: afterwards the old one is there, and after a resume no remains."""
    options = f"{QUICK} --set epochs=4 --set hidden=1000 --set layers=3 --out"
    assert command(f"{options} large").code == 0
    run = place / "cut"
    for _ in range(3):
        remains = half_written(run)
        child = Child(f"{options} cut --resume", place / "log")
        while not child.ended and half_written(run) <= remains:
            time.sleep(0.0005)
        assert child.kill_after(0), child.text
        check_readable(run, 1)
    assert command(f"{options} cut --resume").code == 0
    check_same(run, place / "large")


def half_written(run: Path) -> set[str]:
    """Files that have no proper name yet, but a megabyte."""
    found = set()
    for path in run.glob(".*"):
        with contextlib.suppress(FileNotFoundError):
            found |= {path.name} if path.stat().st_size > 1e6 else set()
    return found


# what a file is written with, in the order of the calls: the module, the function, the number of the call, and whether
# the new file has its name by then
OPERATIONS = [
    (os, "open", 1, False),
    (gind.train.checkpoint, "save", 1, False),
    (os, "fsync", 1, False),
    (os, "replace", 1, False),
    (os, "fsync", 2, True),
]


def trip(owner: Any, name: str, number: int, fault: Callable[[], None], after: bool) -> None:
    """Let the call with this number of a function fail, before or after it has done its work.

    It counts from the third write of a checkpoint on.
    """
    state: Any = gind.train.state
    save_tensors, real, writes, calls = state.save_tensors, getattr(owner, name), [0], [0]

    def counted(*arguments: Any, **options: Any) -> None:
        writes[0] += 1
        save_tensors(*arguments, **options)

    def tripped(*arguments: Any, **options: Any) -> Any:
        calls[0] += writes[0] >= 3
        if calls[0] == number and not after:
            fault()
        result = real(*arguments, **options)
        if calls[0] == number and after:
            fault()
        return result

    state.save_tensors = counted
    setattr(owner, name, tripped)


def die() -> None:
    os._exit(9)


def fail() -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("fault", [die, fail])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_every_step_of_a_write_can_fail(place: Path, fault: Callable[[], None], after: bool) -> None:
    """The training stops in every operation of the third write of a checkpoint: the old one or the new one is there."""
    options = f"{QUICK} --set epochs=6 --out"
    whole = place / f"six-{fault.__name__}-{after}"
    assert command(f"{options} {whole.name}").code == 0
    for position, (owner, name, number, named) in enumerate(OPERATIONS):
        if fault is fail and after and name == "open":
            continue  # it does not make a file and fail
        run = place / f"fault-{fault.__name__}-{after}-{position}"
        prepare = functools.partial(trip, owner, name, number, fault, after)
        child = Child(f"{options} {run.name}", place / "log", prepare)
        assert child.wait() == (9 if fault is die else 2), child.text
        assert epochs_saved(run) == (3 if named or (name == "replace" and after) else 2)
        check_readable(run, 1)
        if fault is fail:
            assert "Input/output error" in child.text
            assert not list(run.glob(".*.part"))
        assert command(f"{options} {run.name} --resume").code == 0
        check_same(run, whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_epoch_and_says_how_to_go_on(place: Path, number: signal.Signals) -> None:
    run = place / number.name
    child = Child(line(run.name, every=100), place / "log")
    wait_for_epochs(run, 3)
    os.kill(child.pid, number)
    assert child.wait() == 1
    done = len(metrics(run))
    assert epochs_saved(run) == done < EPOCHS
    assert f"Stopped by {number.name} after epoch {done}" in child.text
    advice = f"gind train --resume --out {run.name}"
    assert advice in child.text
    assert not (run / "weights.safetensors").exists()
    assert Child(f"{advice.removeprefix('gind ')} --threads 1", place / "log").wait() == 0
    check_same(run, place / "whole")


def test_second_signal_ends_at_once(place: Path) -> None:
    run = place / "twice"

    def endless_epoch() -> None:
        loop: Any = gind.train.loop
        real, calls = loop.evaluate, [0]

        def slow(*arguments: Any, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == 4:
                (place / "slow").touch()
                time.sleep(50)
            return real(*arguments, **named)

        loop.evaluate = slow

    child = Child(line(run.name), place / "log", endless_epoch)
    wait_until((place / "slow").exists)
    os.kill(child.pid, signal.SIGINT)
    time.sleep(0.2)
    assert not child.ended
    os.kill(child.pid, signal.SIGINT)
    start = time.monotonic()
    assert child.wait() not in (0, -signal.SIGALRM)
    assert time.monotonic() - start < 20
    assert "Traceback" not in child.text
    assert epochs_saved(run) == 3
    assert Child(line(run.name, more="--resume"), place / "log").wait() == 0
    check_same(run, place / "whole")


def wait_for_epochs(run: Path, count: int) -> None:
    path = run / "metrics.jsonl"
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= count)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
