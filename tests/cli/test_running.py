"""What `gind reproduce` says: before the first run, after each, and now and then of those that take turns."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_cases import command
from rich.console import Console

from gind.cli import running
from gind.cli.running import Running
from gind.experiments import ahead
from gind.experiments.grid import Finished
from gind.experiments.sheet import Cell, Sheet

SLOW, QUICK = (Cell("texas", "gind", split) for split in (0, 1)), (Cell("texas", "mlp", split) for split in (0, 1))
CELLS = (*SLOW, *QUICK)


class Clock:
    """A time that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ours = Clock()
    monkeypatch.setattr(ahead, "monotonic", ours)
    monkeypatch.setattr(running, "monotonic", ours)
    return ours


def write_seconds(results: Path, cell: Cell, seconds: object) -> None:
    path = results / "s" / cell.place / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"seconds": seconds}))


def lines_of(
    sheet: Sheet, cells: tuple[Cell, ...], results: Path, ended: Iterator[Finished], jobs: int = 1
) -> list[str]:
    out = io.StringIO()
    Running(Console(file=out), sheet, cells, results, jobs).show(ended)
    return out.getvalue().splitlines()


def test_what_is_to_come_is_said_before_the_first_begins(tmp_path: Path, clock: Clock) -> None:
    out = io.StringIO()

    def cells() -> Iterator[Finished]:
        assert out.getvalue() == "1 of 4 runs are there, 3 to run, 2 at a time\n"
        yield from map(Finished, CELLS[1:])

    assert Running(Console(file=out), Sheet("s", "A [title]", CELLS), CELLS[1:], tmp_path, 2).show(cells()) == 0
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["2/4", "3/4", "4/4"]
    assert "ETA" not in lines[3], "nothing is left"
    assert lines[4:] == ["A [title]: 3 done, 1 were there, 0 failed."]


def test_where_all_is_there_nothing_is_to_come(tmp_path: Path) -> None:
    lines = lines_of(Sheet("s", "A title", CELLS), (), tmp_path, iter(()))
    assert lines == ["A title: 0 done, 4 were there, 0 failed."]


def test_the_time_that_is_left_is_that_of_the_same_system_elsewhere(tmp_path: Path, clock: Clock) -> None:
    for split, seconds in ((7, 500.0), (8, 600.0), (9, 99999.0)):
        write_seconds(tmp_path, Cell("texas", "gind", split), seconds)
    (tmp_path / "s/texas/gind/9-0/report.json").write_text("{")
    write_seconds(tmp_path, Cell("texas", "mlp", 9), 6.0)
    sheet = Sheet("s", "s", CELLS)

    def cells(order: tuple[Cell, ...]) -> Iterator[Finished]:
        for cell in order:
            clock.now += 10
            yield Finished(cell)

    lines = lines_of(sheet, CELLS, tmp_path, cells(CELLS[::-1]))
    assert [line.partition("ETA ")[2] for line in lines[1:5]] == ["18 min", "18 min", "9 min", ""]
    lines = lines_of(sheet, CELLS, tmp_path, cells(CELLS))
    assert [line.partition("ETA ")[2] for line in lines[1:5]] == ["9 min", "under 1 min", "under 1 min", ""]
    lines = lines_of(sheet, CELLS, tmp_path, cells(CELLS[::-1]), jobs=2)
    assert [line.partition("ETA ")[2] for line in lines[1:5]] == ["9 min", "9 min", "9 min", ""]


def test_without_reports_a_run_takes_the_mean_of_those_before(tmp_path: Path, clock: Clock) -> None:
    def cells() -> Iterator[Finished]:
        for cell in CELLS:
            clock.now += 120
            yield Finished(cell, error="it failed")

    lines = lines_of(Sheet("s", "s", CELLS), CELLS, tmp_path, cells())
    assert [line.partition("ETA ")[2] for line in lines[1:5]] == ["6 min", "4 min", "2 min", ""]
    assert all("it failed" in line for line in lines[1:5])


def test_more_jobs_than_runs_change_nothing(tmp_path: Path, clock: Clock) -> None:
    def cells() -> Iterator[Finished]:
        for cell in CELLS[:2]:
            clock.now += 120
            yield Finished(cell)

    lines = lines_of(Sheet("s", "s", CELLS), CELLS[:2], tmp_path, cells(), jobs=7)
    assert lines[0] == "2 of 4 runs are there, 2 to run, 2 at a time"
    assert lines[1].endswith("ETA 4 min"), "two ran beside each other, of 240 seconds each"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, 10**400, "soon", None, [3]])
def test_seconds_that_are_none_are_not_counted(tmp_path: Path, clock: Clock, seconds: object) -> None:
    write_seconds(tmp_path, Cell("texas", "gind", 7), 600.0)
    for split in (8, 9):
        write_seconds(tmp_path, Cell("texas", "gind", split), seconds)
    lines = lines_of(Sheet("s", "s", CELLS[:2]), CELLS[:2], tmp_path, map(Finished, CELLS[:2]))
    assert lines[1].endswith("ETA 10 min")


def test_what_another_process_has_run_meanwhile_was_there(tmp_path: Path) -> None:
    ended = iter(
        [Finished(CELLS[0], skipped=True), Finished(CELLS[1]), Finished(CELLS[2], error="no"), Finished(CELLS[3])]
    )
    lines = lines_of(Sheet("s", "s", CELLS), CELLS, tmp_path, ended)
    assert lines[-1] == "s: 2 done, 1 were there, 1 failed."
    assert [line.split()[0] for line in lines[1:-1]] == ["2/4", "3/4", "4/4"]


def test_those_that_take_turns_say_how_far_they_are_once_a_minute(tmp_path: Path, clock: Clock) -> None:
    cells = tuple(Cell("texas", model, 2, 0, (("epochs", 10),)) for model in ("mlp", "gcn"))
    out = io.StringIO()
    shown = Running(Console(file=out), Sheet("s", "s", cells, turns=True), cells, tmp_path, 2)

    def ended() -> Iterator[Finished]:
        for epoch in range(11):
            shown.epoch(cells, epoch)
            clock.now += 40
        yield from map(Finished, cells)

    shown.show(ended())
    assert out.getvalue().splitlines()[:-3] == [
        "0 of 2 runs are there, 2 to run; on each split these take turns, epoch by epoch: mlp, gcn",
        *(
            f"texas split 2: epoch {epoch} of 10  ETA {eta}"
            for epoch, eta in ((2, "5 min"), (4, "4 min"), (6, "3 min"))
        ),
        "texas split 2: epoch 8 of 10  ETA 1 min",
        "texas split 2: epoch 10 of 10  ETA under 1 min",
    ]


@pytest.mark.parametrize("turns", [False, True])
def test_the_command_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: bool) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "EVERY", 0.0)
    block = (
        '[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp", "gcn"]\nsplits = "0"\nset = { epochs = 2, patience = 0 }\n'
    )
    (tmp_path / "s.toml").write_text(f"turns = {str(turns).lower()}\n{block}")
    lines = command("reproduce s.toml").stdout.splitlines()
    if turns:
        assert lines[0] == "0 of 2 runs are there, 2 to run; on each split these take turns, epoch by epoch: mlp, gcn"
        assert [line.partition("  ")[0] for line in lines[1:4]] == [f"wine split 0: epoch {n} of 2" for n in range(3)]
    else:
        assert lines[0] == "0 of 2 runs are there, 2 to run, 1 at a time"
    assert [line.split()[0] for line in lines[-3:-1]] == ["1/2", "2/2"]
    report = tmp_path / "results/s/wine/mlp/0-0/report.json"
    report.unlink()
    lines = command("reproduce s.toml --jobs 2").stdout.splitlines()
    assert lines[0].startswith("0 of 2 runs are there, 2 to run;" if turns else "1 of 2 runs are there, 1 to run, 1 at")
