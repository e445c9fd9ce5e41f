"""Sheets of many runs: what they contain, that nothing is done twice, and that one failure stops nothing."""

import dataclasses
import json
import math
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from cli_cases import snapshot

from gind.experiments import ConfigError, run
from gind.experiments.block import Keys
from gind.experiments.checks import check_cells
from gind.experiments.grid import run_cell, run_grid
from gind.experiments.items import progress
from gind.experiments.models import MODELS
from gind.experiments.sheet import Cell, Sheet, parse_splits, read_sheet
from gind.experiments.spec import make_spec
from gind.experiments.toml import dump_toml, read_toml
from gind.train import EpochRecord, Observer, load_tensors, save_tensors
from gind.train.checkpoint import CheckpointError

SHEETS = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
KEYS = (("epochs", 2), ("hidden", 4))


def test_splits_are_written_short() -> None:
    assert parse_splits("0-3") == [0, 1, 2, 3]
    assert parse_splits("7") == [7]
    assert parse_splits("0, 2,5-6") == [0, 2, 5, 6]
    for text in ("", "a", "1-", "-1", "1--2", "5-2", "0,5-2"):
        with pytest.raises(ConfigError, match="0-9"):
            parse_splits(text)


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_every_cell_of_our_sheets_is_a_run(path: Path) -> None:
    sheet = read_sheet(path)
    assert len(set(sheet.cells)) == len(sheet.cells)
    for cell in {dataclasses.replace(cell, split=0) for cell in sheet.cells}:
        assert make_spec(cell.table).model in MODELS


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_no_cell_of_our_sheets_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gind.experiments.checks.find_data", lambda dataset, root: None)
    check_cells(read_sheet(path).cells, None)


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
    with pytest.raises(ConfigError, match=r"no split 2\. There are: 0, 1"):
        sheet.select([], [], [1, 2])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cells = 3",
        "cells = []",
        "cells = [1]",
        "title = 'x'\n[[cells]]\ndatasets = ['a']",
        "sets = 1\n[[cells]]",
        "[[cells]]\nx = 1",
        "seeds = 3\n[[cells]]\ndatasets = ['a']\nmodels = ['b']\nsplits = '0'",
        "[[cells]]\ndatasets = ['a']\nmodels = ['b']\nsplits = '3-1'",
        'turns = 1\n[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0"',
        'turns = true\n[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0"\nresults = "baselines"',
    ],
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


def test_a_report_of_other_keys_is_open_and_trained_again(tmp_path: Path) -> None:
    places = (tmp_path / "results", tmp_path / "work")
    path = tmp_path / "results/s/wine/mlp/0-0/report.json"
    before, after = (Sheet("s", "s", (Cell("wine", "mlp", 0, 0, (*KEYS, ("lr", lr))),)) for lr in (0.1, 0.2))
    assert [done.error for done in run_grid(before, *places)] == [""]
    assert (progress(before, places[0]), progress(after, places[0])) == (1, 0)
    assert [(done.error, done.skipped) for done in run_grid(after, *places)] == [("", False)]
    assert json.loads(path.read_text())["config"]["train"]["lr"] == 0.2
    assert (progress(before, places[0]), progress(after, places[0])) == (0, 1)
    path.write_text("{")
    assert progress(after, places[0]) == 0


@pytest.mark.parametrize("change", ["key", "epochs", "default", "unknown key", "nothing"])
def test_a_training_of_other_keys_that_was_stopped_begins_anew(tmp_path: Path, change: str) -> None:
    cell = Cell("wine", "mlp", 0, 0, (*KEYS, ("lr", 0.1)))
    place = tmp_path / "work"
    run(make_spec(cell.table), place, observers=[Stopped()], checkpoint_every=1)
    assert not (place / "report.json").exists()
    config = place / "config.toml"
    if change == "key":
        cell = dataclasses.replace(cell, keys=(*KEYS, ("lr", 0.2)))
    elif change == "epochs":
        cell = dataclasses.replace(cell, keys=(*KEYS[1:], ("epochs", 3), ("lr", 0.1)))
    elif change == "default":
        config.write_text(re.sub(r"(?m)^weight_decay = .*", "weight_decay = 0.125", config.read_text()))
    elif change == "unknown key":
        config.write_text(config.read_text().replace("[model]", "[model]\nthat_was = 1"))
    seen = Seen()
    assert run_cell(cell, tmp_path / "results", place, None, observers=[seen]) == ""
    assert seen.before == (1 if change == "nothing" else 0)
    report = json.loads((tmp_path / "results/report.json").read_text())
    assert cell.mismatch(report) == ""
    assert report["training"]["epochs"] == (3 if change == "epochs" else 2)


@pytest.mark.parametrize("damage", ["cut off", "incomplete", "infinite", "no header"])
def test_a_damaged_checkpoint_begins_anew_in_a_grid_alone(tmp_path: Path, damage: str) -> None:
    cell, place = Cell("wine", "mlp", 0, 0, KEYS), tmp_path / "work"
    run(make_spec(cell.table), place, observers=[Stopped()], checkpoint_every=1)
    checkpoint = place / "checkpoint.safetensors"
    if damage == "cut off":
        checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    elif damage == "no header":
        checkpoint.write_bytes(safetensors.torch.save({"x": torch.zeros(1)}))
    elif damage == "infinite":
        tensors, about = load_tensors(checkpoint, "checkpoint")
        tensors["history"][0, 0] = math.inf
        save_tensors(checkpoint, tensors, about, "checkpoint")
    else:
        tensors, about = load_tensors(checkpoint, "checkpoint")
        save_tensors(checkpoint, {"random": tensors["random"]}, {"fingerprint": about["fingerprint"]}, "checkpoint")
    broken = snapshot(place)
    with pytest.raises(CheckpointError, match="Delete it and train again"):
        run(make_spec(cell.table), place, resume=True)
    assert snapshot(place) == broken
    seen = Seen()
    assert run_cell(cell, tmp_path / "results", place, None, observers=[seen]) == ""
    assert seen.before == 0
    assert (tmp_path / "results/report.json").exists()
    assert (place / "checkpoint.safetensors.damaged").read_bytes() == broken["checkpoint.safetensors"]


@pytest.mark.parametrize("config", [None, b"", b"[[[", b"\xff\xfe\0", b'dataset = "wine"\n'])
@pytest.mark.parametrize("anew", [False, True])
def test_a_run_that_does_not_say_what_it_is_begins_anew(tmp_path: Path, config: bytes | None, anew: bool) -> None:
    cell, place, seen = Cell("wine", "mlp", 0, 0, KEYS), tmp_path / "work", Seen()
    run(make_spec(cell.table), place, observers=[Stopped()], checkpoint_every=1)
    checkpoint = (place / "checkpoint.safetensors").read_bytes()
    if config is None:
        (place / "config.toml").unlink()
    else:
        (place / "config.toml").write_bytes(config)
    assert run_cell(cell, tmp_path / "results", place, None, observers=[seen], anew=anew) == ""
    assert seen.before == 0
    assert (tmp_path / "results/report.json").exists()
    assert (place / "checkpoint.safetensors.damaged").read_bytes() == checkpoint
    assert run_cell(cell, tmp_path / "results", place, None) == ""


def test_a_config_that_cannot_be_read_just_now_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell, place = Cell("wine", "mlp", 0, 0, KEYS), tmp_path / "work"
    run(make_spec(cell.table), place, observers=[Stopped()], checkpoint_every=1)
    there, read_text = snapshot(place), Path.read_text
    refused: list[Path] = []

    def refuse_once(path: Path, *args: Any, **more: Any) -> str:
        if path.name == "config.toml" and not refused:
            refused.append(path)
            raise OSError(24, "Too many open files")
        return read_text(path, *args, **more)

    monkeypatch.setattr(Path, "read_text", refuse_once)
    assert "cannot be read" in run_cell(cell, tmp_path / "results", place, None)
    assert snapshot(place) == there


@pytest.mark.parametrize(
    "error", [OSError(24, "Too many open files"), RuntimeError("no memory")], ids=["files", "memory"]
)
def test_a_checkpoint_that_cannot_be_read_just_now_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    cell, place, seen = Cell("wine", "mlp", 0, 0, KEYS), tmp_path / "work", Seen()
    run(make_spec(cell.table), place, observers=[Stopped()], checkpoint_every=1)
    there = snapshot(place)

    def refuse(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as now:
        now.setattr("gind.train.checkpoint.safe_open", refuse)
        assert "cannot be read" in run_cell(cell, tmp_path / "results", place, None)
    assert snapshot(place) == there
    assert run_cell(cell, tmp_path / "results", place, None, observers=[seen]) == ""
    assert seen.before == 1


def test_a_checkpoint_of_another_training_is_no_damaged_one(tmp_path: Path) -> None:
    """Its data, perhaps, is elsewhere than --data says: what was trained is kept."""
    cell, place = Cell("wine", "mlp", 0, 0, KEYS), tmp_path / "work"
    run(make_spec(cell.table), place, observers=[Stopped()], checkpoint_every=1)
    checkpoint = place / "checkpoint.safetensors"
    tensors, about = load_tensors(checkpoint, "checkpoint")
    about["fingerprint"]["data"] = "other"
    save_tensors(checkpoint, tensors, about, "checkpoint")
    there = snapshot(place)
    assert "checkpoint of another training" in run_cell(cell, tmp_path / "results", place, None)
    assert snapshot(place) == there


class Stopped(Observer):
    """A training that SIGTERM ends after the first epoch."""

    def epoch(self, record: EpochRecord) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class Seen(Observer):
    """How many epochs were there before."""

    before = -1

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        self.before = len(history)


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_what_a_run_writes_down_of_its_keys_is_read_back(path: Path, tmp_path: Path) -> None:
    """Else a cell that was stopped would begin anew."""
    for cell in {dataclasses.replace(cell, split=0, seed=0) for cell in read_sheet(path).cells}:
        spec = make_spec(cell.table)
        (tmp_path / "config.toml").write_text(dump_toml(spec.table()))
        assert make_spec(read_toml(tmp_path / "config.toml"), use_defaults=False).table() == spec.table()


@pytest.mark.parametrize(
    ("keys", "section", "there", "same"),
    [
        ((("lr", 1),), "train", {"lr": 1.0}, True),
        ((("train.lr", 0.5),), "train", {"lr": 0.25}, False),
        ((("hidden", 4),), "model", {"hidden": 8}, False),
        ((("stop.max_steps", 4),), "model", {"stop": {"tol": 0.125, "max_steps": 4}}, True),
        ((("stop.max_steps", 4),), "model", {"stop": {"tol": 0.125, "max_steps": 5}}, False),
        ((("solver", "picard"),), "model", {"solver": {"kind": "picard"}}, True),
        ((("solver", "picard"),), "model", {"solver": {"kind": "picard", "damping": 0.125}}, False),
        ((("regularizer", "none"),), "model", {"regularizer": {"kind": "laplacian", "eta": 0.5}}, False),
        ((("regularizer.kind", "laplacian"), ("regularizer.eta", 0.5)), "model", {"regularizer": "none"}, False),
        ((("length", 10),), "data", {"length": 20}, False),
    ],
)
def test_only_the_keys_of_the_sheet_are_compared(keys: Keys, section: str, there: dict[str, Any], same: bool) -> None:
    cell = Cell("texas", "gind", 0, 0, keys)
    config = make_spec(cell.table).table()
    report = {"model": "gind", "split": 0, "seed": 0, "config": config}
    assert cell.mismatch(report) == ""
    assert dataclasses.replace(cell, keys=()).mismatch(report) == ""
    config["train"]["epochs"] = 12345  # the sheet does not say it
    config[section] |= there
    assert (cell.mismatch(report) == "") == same


def test_an_old_report_lacks_keys_only_where_they_have_their_default() -> None:
    default = make_spec({"dataset": "wine", "model": {"name": "gcn"}}, use_defaults=False).table()["model"]["layers"]
    for layers, same in ((default, True), (default + 1, False)):
        cell = Cell("wine", "gcn", 0, 0, (("layers", layers),))
        config = make_spec(cell.table).table()
        del config["model"]["layers"]
        assert (cell.mismatch({"model": "gcn", "split": 0, "seed": 0, "config": config}) == "") == same


def test_a_block_may_have_its_own_seeds(tmp_path: Path) -> None:
    path = tmp_path / "seeds.toml"
    block = '[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0"\n'
    path.write_text(f"{block}{block}seeds = [1, 2]\n")
    assert [cell.seed for cell in read_sheet(path).cells] == [0, 1, 2]
