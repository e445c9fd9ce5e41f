"""Runs that take turns: each leaves its times, one that fails stops nobody, and nothing is measured twice."""

import json
import multiprocessing
import os
import signal
from collections.abc import Generator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gind.experiments import turns
from gind.experiments.sheet import Cell, Sheet
from gind.experiments.turns import run_in_turns, timing

KEYS = (("epochs", 3), ("hidden", 4), ("patience", 0))
BROKEN = (("hidden", 0),)


def test_the_first_epoch_pays_for_preprocessing() -> None:
    assert timing([9.0, 1.0, 1.0, 2.0]) == pytest.approx({"preprocessing": 7.5, "training": 5.5})
    assert timing([1.0, 2.0, 3.0]) == {"preprocessing": 0.0, "training": 6.0}
    assert timing([4.0]) == {"preprocessing": 0.0, "training": 4.0}
    assert timing([]) == {"preprocessing": 0.0, "training": 0.0}


def test_no_epoch_runs_before_all_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a training writes this file, without a line, when data and model are there
    files = [tmp_path / f"work/s/wine/{model}/0-0/metrics.jsonl" for model in ("mlp", "gcn")]
    lines: list[list[int]] = []
    turn = turns._turn

    def count_and_turn(talk: Connection) -> str | None:
        lines.append([len(path.read_text().splitlines()) if path.exists() else -1 for path in files])
        return turn(talk)

    monkeypatch.setattr(turns, "_turn", count_and_turn)
    sheet = Sheet("s", "s", tuple(Cell("wine", model, 0, 0, KEYS) for model in ("mlp", "gcn")))
    assert [done.error for done in run_in_turns(sheet, tmp_path / "results", tmp_path / "work")] == ["", ""]
    assert lines[:3] == [[0, 0], [1, 0], [1, 1]]


def test_turns_end_with_times_and_one_failure_stops_nobody(tmp_path: Path) -> None:
    cells = (Cell("wine", "gcn", 0, 0, BROKEN), Cell("wine", "mlp", 0, 0, KEYS))
    places = (tmp_path / "results", tmp_path / "work")
    ended = {done.cell: done.error for done in run_in_turns(Sheet("s", "s", cells), *places)}
    assert ended[cells[1]] == ""
    assert "hidden must be at least 1" in ended[cells[0]]
    path = tmp_path / "results/s/wine/mlp/0-0/report.json"
    report = json.loads(path.read_text())
    assert report["training"]["epochs"] == 3
    assert sum(report["timing"].values()) == pytest.approx(report["seconds"])
    before = path.stat().st_mtime_ns
    again = list(run_in_turns(Sheet("s", "s", cells[1:]), *places))
    assert [done.skipped for done in again] == [True]
    assert path.stat().st_mtime_ns == before


def test_whoever_stops_leaves_no_process_and_no_times_of_two_rounds(tmp_path: Path) -> None:
    """The first of three cannot be built, the second has ended, the third is under way."""
    long = (("epochs", 10**6), ("hidden", 4), ("patience", 0))
    cells = (Cell("wine", "gcn", 0, 0, BROKEN), Cell("wine", "mlp", 0, 0, KEYS), Cell("wine", "sage", 0, 0, long))
    sheet, results = Sheet("s", "s", cells), tmp_path / "results"
    old = [results / sheet.path(cell) / "report.json" for cell in cells]
    for path in old:
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    running = run_in_turns(sheet, results, tmp_path / "work")
    assert isinstance(running, Generator)
    assert "hidden must be at least 1" in next(running).error
    assert next(running).error == ""
    (child,) = multiprocessing.active_children()
    running.close()
    assert not child.is_alive()
    assert not multiprocessing.active_children()
    assert [path.exists() for path in old] == [False, True, False]


def test_other_splits_are_other_rounds(tmp_path: Path) -> None:
    cells = tuple(Cell("wine", model, split, 0, KEYS) for split in (0, 1) for model in ("mlp", "gcn"))
    sheet, places = Sheet("s", "s", cells, turns=True), (tmp_path / "results", tmp_path / "work")
    ended = []
    for done in run_in_turns(sheet, *places):
        ended.append(done.cell)
        assert len(multiprocessing.active_children()) <= 1, "the second round begins when the first has ended"
    assert set(ended[:2]) == set(cells[:2])
    (places[0] / sheet.path(cells[3]) / "report.json").unlink()
    again = {done.cell: done.skipped for done in run_in_turns(sheet, *places)}
    assert again == {cells[0]: True, cells[1]: True, cells[2]: False, cells[3]: False}
    path = places[0] / sheet.path(cells[0]) / "report.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "timing"}))
    assert not sheet.done(cells[0], places[0]), "it took no turns"
    assert sheet.done(cells[1], places[0])


def test_if_one_report_is_missing_all_are_measured_anew(tmp_path: Path) -> None:
    sheet = Sheet("s", "s", tuple(Cell("wine", model, 0, 0, KEYS) for model in ("mlp", "gcn")))
    places = (tmp_path / "results", tmp_path / "work")
    assert [done.error for done in run_in_turns(sheet, *places)] == ["", ""]
    kept, missing = (places[0] / sheet.path(cell) / "report.json" for cell in sheet.cells)
    before = kept.stat().st_mtime_ns
    missing.unlink()
    assert [(done.error, done.skipped) for done in run_in_turns(sheet, *places)] == [("", False)] * 2
    assert kept.stat().st_mtime_ns > before
    for path in (kept, missing):
        report = json.loads(path.read_text())
        assert report["training"]["epochs"] == 3
        assert sum(report["timing"].values()) == pytest.approx(report["seconds"])


def test_a_run_that_a_signal_stopped_has_failed_and_leaves_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, turns_given = turns._turn, 0

    def stop_and_turn(talk: Connection) -> str | None:
        nonlocal turns_given
        turns_given += 1
        if turns_given == 2:
            (process,) = multiprocessing.active_children()
            assert process.pid is not None
            os.kill(process.pid, signal.SIGTERM)
        return turn(talk)

    monkeypatch.setattr(turns, "_turn", stop_and_turn)
    sheet = Sheet("s", "s", (Cell("wine", "mlp", 0, 0, KEYS),))
    path = tmp_path / "results" / sheet.path(sheet.cells[0]) / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")  # of other keys, perhaps: not this run's, and not to be lost
    (done,) = run_in_turns(sheet, tmp_path / "results", tmp_path / "work")
    assert done.error == "stopped by SIGTERM"
    assert path.read_text() == "{}"


def test_times_of_two_rounds_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = Sheet("s", "s", tuple(Cell("wine", model, 0, 0, KEYS) for model in ("mlp", "gcn")))
    places = (tmp_path / "results", tmp_path / "work")
    assert [done.error for done in run_in_turns(sheet, *places)] == ["", ""]
    missing, old = (places[0] / sheet.path(cell) / "report.json" for cell in sheet.cells)
    missing.unlink()
    turn, count = turns._turn, iter(range(100))

    def kill_the_second(talk: Connection) -> str | None:
        if next(count) == 1:
            raise EOFError
        return turn(talk)

    monkeypatch.setattr(turns, "_turn", kill_the_second)
    monkeypatch.setattr(turns, "how_it_ended", lambda process: "was killed")
    assert sorted(done.error for done in run_in_turns(sheet, *places)) == ["", "was killed"]
    assert missing.exists()
    assert not old.exists(), "so the next call measures both"
