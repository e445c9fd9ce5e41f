"""Sheets of many runs: what they contain, that nothing is done twice, and that one failure stops nothing."""

import dataclasses
import json
from pathlib import Path

import pytest

from gind.experiments import ConfigError
from gind.experiments.grid import Cell, Sheet, parse_splits, read_sheet, run_grid
from gind.experiments.models import MODELS
from gind.experiments.spec import make_spec

SHEETS = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
KEYS = (("epochs", 2), ("hidden", 4))


def test_splits_are_written_short() -> None:
    assert parse_splits("0-3") == [0, 1, 2, 3]
    assert parse_splits("7") == [7]
    assert parse_splits("0, 2,5-6") == [0, 2, 5, 6]
    for text in ("", "a", "1-", "-1", "1--2"):
        with pytest.raises(ConfigError, match="0-9"):
            parse_splits(text)


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_every_cell_of_our_sheets_is_a_run(path: Path) -> None:
    sheet = read_sheet(path)
    assert len(set(sheet.cells)) == len(sheet.cells)
    for cell in {dataclasses.replace(cell, split=0) for cell in sheet.cells}:
        assert make_spec(cell.table).model in MODELS


def test_a_sheet_is_read_and_narrowed(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(
        'title = "t"\nseeds = [0, 1]\n[[cells]]\ndatasets = ["wine", "karate"]\nmodels = ["mlp"]\nsplits = "0-1"\n'
        "set = { epochs = 2 }\n"
    )
    sheet = read_sheet(path)
    assert (sheet.name, sheet.title, len(sheet.cells)) == ("small", "t", 8)
    assert sheet.cells[0] == Cell("wine", "mlp", 0, 0, (("epochs", 2),))
    assert len(sheet.select(["wine"], [], [1]).cells) == 2
    with pytest.raises(ConfigError, match=r"no dataset 'wien'\. Did you mean 'wine'"):
        sheet.select(["wien"], [], [])
    with pytest.raises(ConfigError, match="no model 'gcn'"):
        sheet.select([], ["gcn"], [])


@pytest.mark.parametrize(
    "text",
    ["", "cells = 3", "title = 'x'\n[[cells]]\ndatasets = ['a']", "sets = 1\n[[cells]]", "[[cells]]\nx = 1"],
)
def test_what_is_no_sheet_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.toml"):
        read_sheet(path)


def test_cells_run_once_and_a_failure_stops_nothing(tmp_path: Path) -> None:
    cells = (Cell("wine", "mlp", 0, 0, KEYS), Cell("wine", "mlp", 99, 0, KEYS), Cell("wine", "gcn", 0, 1, KEYS))
    sheet = Sheet("s", "s", cells)
    ended = {done.cell: done for done in run_grid(sheet, tmp_path / "results", tmp_path / "work", jobs=2)}
    assert set(ended) == set(cells)
    assert [ended[cell].error == "" for cell in cells] == [True, False, True]
    assert "no split 99" in ended[cells[1]].error
    report = json.loads((tmp_path / "results/s/wine/gcn/0-1/report.json").read_text())
    assert (report["model"], report["seed"], report["training"]["epochs"]) == ("gcn", 1, 2)
    again = list(run_grid(sheet, tmp_path / "results", tmp_path / "work"))
    assert [done.skipped for done in again if done.cell != cells[1]] == [True, True]


def test_a_block_may_have_its_own_seeds(tmp_path: Path) -> None:
    path = tmp_path / "seeds.toml"
    block = '[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0"\n'
    path.write_text(f"{block}{block}seeds = [1, 2]\n")
    assert [cell.seed for cell in read_sheet(path).cells] == [0, 1, 2]
