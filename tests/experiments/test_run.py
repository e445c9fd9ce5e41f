"""The directory of a run: whatever stops it, what lies there is of one training."""

import json
import signal
from pathlib import Path
from typing import Any

import filelock
import pytest
from training_problems import Cut

from gind.experiments import RunError, load_artefact, make_spec, run
from gind.experiments.spec import Spec
from gind.train import CheckpointError, Observer


def spec_of(epochs: int, **keys: Any) -> Spec:
    return make_spec({"dataset": "wine", "model": "mlp", "epochs": epochs, "hidden": 4, "patience": 0, **keys})


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("[!.]*")}


@pytest.mark.parametrize("number", [signal.SIGTERM, None], ids=["signal", "crash"])
def test_a_longer_training_that_was_stopped_has_no_model_of_the_shorter(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    run(spec_of(3), tmp_path / "run")
    load_artefact(tmp_path / "run")
    try:
        run(spec_of(50), tmp_path / "run", resume=True, observers=[Cut(5, number)])
    except ConnectionAbortedError:
        assert number is None
    assert not {"report.json", "weights.safetensors"} & set(files(tmp_path / "run"))
    with pytest.raises(CheckpointError, match="the training has not ended"):
        load_artefact(tmp_path / "run")
    report = run(spec_of(50), tmp_path / "run", resume=True).report
    assert report["training"]["epochs"] == 50
    assert load_artefact(tmp_path / "run").spec.train.epochs == 50
    whole = run(spec_of(50), tmp_path / "whole").report
    assert {**whole, "seconds": 0} == {**report, "seconds": 0}


def test_a_resume_that_trains_nothing_leaves_the_model_there(tmp_path: Path) -> None:
    run(spec_of(3), tmp_path)
    before = files(tmp_path)

    class Look(Observer):
        def start(self, *_: Any) -> None:
            assert files(tmp_path)["weights.safetensors"] == before["weights.safetensors"]
            assert files(tmp_path)["report.json"] == before["report.json"]

    run(spec_of(3), tmp_path, resume=True, observers=[Look()])
    assert files(tmp_path) == before


def test_a_resume_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    run(spec_of(3), tmp_path)
    before = files(tmp_path)
    with pytest.raises(RunError, match="lr was"):
        run(spec_of(50, lr=0.5), tmp_path, resume=True)
    with pytest.raises(CheckpointError, match="has 3 epochs already"):
        run(spec_of(2), tmp_path, resume=True)
    assert files(tmp_path) == before
    (tmp_path / "checkpoint.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="damaged"):
        run(spec_of(50), tmp_path, resume=True)
    assert files(tmp_path) == {**before, "checkpoint.safetensors": b"nonsense"}
    assert json.loads(before["report.json"])["training"]["epochs"] == 3


def test_nothing_of_a_run_that_is_replaced_stays(tmp_path: Path) -> None:
    run(spec_of(3), tmp_path)
    run(spec_of(1), tmp_path / "beside" / "mlp")
    (tmp_path / "predictions.csv").write_text("of before")
    (tmp_path / "notes.txt").write_text("by the user")
    (tmp_path / "tensorboard").mkdir()
    with filelock.FileLock(tmp_path / "beside" / "mlp" / ".lock"), pytest.raises(RunError, match="Another process"):
        run(spec_of(2), tmp_path, overwrite=True)
    run(spec_of(2), tmp_path, overwrite=True)
    assert not {"predictions.csv", "beside", "tensorboard"} & {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "notes.txt").exists()
