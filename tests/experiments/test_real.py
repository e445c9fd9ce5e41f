"""Short trainings on real data: how much better than what knows nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_data import ROOT, need

from gind.experiments import load_artefact, make_spec, open_data, predict_run, run
from gind.experiments.items import find_item
from gind.experiments.sheet import read_sheet


def train(tmp_path: Path, dataset: str, model: str = "gind", **options: Any) -> dict[str, Any]:
    spec = make_spec({"dataset": dataset, "model": {"name": model}, **options})
    outcome = run(spec, tmp_path / model, root=ROOT)
    if model == "gind":
        certificate = outcome.report["certificate"]
        assert certificate["residual"] <= certificate["tolerance"]
        assert certificate["bound"] is not None
        assert outcome.report["training"]["unsolved"] == 0
    return outcome.report


def test_cora_beats_a_classifier_without_the_graph_and_the_majority(tmp_path: Path) -> None:
    need("cora")
    report = train(tmp_path, "cora", hidden=16, epochs=40, dropout=0.5, lr=0.02)
    floor = train(tmp_path, "cora", "mlp", hidden=16, epochs=40, lr=0.02)
    accuracy = report["test"]["accuracy"]
    assert accuracy >= floor["test"]["accuracy"] + 0.03
    assert accuracy >= report["majority"] + 0.4


def test_texas_beats_the_majority(tmp_path: Path) -> None:
    need("texas")
    report = train(tmp_path, "texas", hidden=16, epochs=40)
    assert report["test"]["accuracy"] >= report["majority"] + 0.04


def test_mutag_end_to_end(tmp_path: Path) -> None:
    need("mutag")
    report = train(tmp_path, "mutag", hidden=16, epochs=20, lr=0.01, batch_size=32)
    assert report["test"]["accuracy"] > 0.5
    assert report["validation"]["accuracy"] >= 0.7


@pytest.mark.parametrize("classes", [2, 3])
def test_chains_of_length_10_are_solved(tmp_path: Path, classes: int) -> None:
    """The class stands at the first node only; the last one is nine hops away."""
    report = train(tmp_path, "chains", classes=classes, length=10, hidden=8, epochs=40, lr=0.1, implicit_lr=0.02)
    assert report["test"]["accuracy"] == 1.0


def write_ppi(folder: Path) -> None:
    """Files in GraphSAGE's raw format whose labels are the signs of the features."""
    raw = folder / "ppi" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for first, (part, sizes) in enumerate({"train": [20, 25, 30], "valid": [20], "test": [20, 22]}.items()):
        n = sum(sizes)
        x = rng.normal(size=(n, 4))
        graph = np.repeat(np.arange(len(sizes)) + 10 * first, sizes)
        pairs = rng.integers(n, size=(3 * n, 2))
        links = [{"source": int(a), "target": int(b)} for a, b in pairs if graph[a] == graph[b]]
        content = {"directed": False, "multigraph": False, "graph": {}, "nodes": [{"id": i} for i in range(n)]}
        np.save(raw / f"{part}_feats.npy", x)
        np.save(raw / f"{part}_labels.npy", (x > 0).astype(np.int64))
        np.save(raw / f"{part}_graph_id.npy", graph)
        (raw / f"{part}_graph.json").write_text(json.dumps({**content, "links": links}))


def test_ppi_format_end_to_end(tmp_path: Path) -> None:
    """Learned on unseen graphs."""
    write_ppi(tmp_path)
    spec = make_spec({"dataset": "ppi", "hidden": 8, "epochs": 40, "lr": 0.05, "batch_size": 2, "dropout": 0.0})
    outcome = run(spec, tmp_path / "run", root=tmp_path)
    assert outcome.report["test"]["micro_f1"] > 0.85
    assert outcome.report["certificate"]["reached"]
    artefact = load_artefact(tmp_path / "run")
    predictions = predict_run(artefact, open_data(artefact, None, tmp_path, labels=True))
    assert predictions.probabilities.shape == (137, 4)
    assert predictions.multilabel


@pytest.mark.parametrize("model", sorted({cell.model for cell in read_sheet(find_item("ppi")).cells}))
def test_every_system_of_the_item_runs_on_files_of_its_format(tmp_path: Path, model: str) -> None:
    write_ppi(tmp_path)
    spec = make_spec({"dataset": "ppi", "model": model, "hidden": 8, "epochs": 2, "patience": 0})
    report = run(spec, tmp_path / "run", root=tmp_path).report
    artefact = load_artefact(tmp_path / "run")
    predictions = predict_run(artefact, open_data(artefact, None, tmp_path, labels=True))
    positive = predictions.probabilities.numpy()[-42:] > 0.5  # the two graphs of the test part come last
    true = np.load(tmp_path / "ppi/raw/test_labels.npy") > 0
    f1 = 2 * (positive & true).sum() / (positive.sum() + true.sum())
    assert report["test"]["micro_f1"] == pytest.approx(f1)
