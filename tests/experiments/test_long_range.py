"""Long range: certified equilibria carry a class over a whole chain, and every label is proven."""

from pathlib import Path

import pytest
import torch

from gind.experiments import load_artefact, make_spec, open_data, predict_run, run


@pytest.mark.parametrize("classes", [2, 3])
def test_the_end_of_a_chain_hears_of_its_beginning(tmp_path: Path, classes: int) -> None:
    spec = make_spec({"dataset": "chains", "length": 60, "classes": classes, "epochs": 6, "lr": 0.03})
    report = run(spec, tmp_path / "run").report
    assert report["test"]["accuracy"] == 1.0
    certificate = report["certificate"]
    assert certificate["proven"]
    assert certificate["residual"] <= certificate["tolerance"] <= 1e-4
    assert report["training"]["unsolved"] == 0
    # in double precision all the way: what was saved is what was trained
    artefact = load_artefact(tmp_path / "run")
    assert {parameter.dtype for parameter in artefact.model.parameters()} == {torch.float64}
    data = open_data(artefact, None, None, labels=True)
    predictions = predict_run(artefact, data)
    assert predictions.probabilities.dtype == torch.float64
    assert torch.equal(predictions.probabilities.argmax(dim=1), data.graphs[0].y)
    assert predictions.proven is not None
    assert bool(predictions.proven.all())


def test_eignn_tells_two_classes_at_the_end_of_a_chain(tmp_path: Path) -> None:
    options = {"dataset": "chains", "length": 100, "epochs": 10, "model": {"name": "eignn"}}
    report = run(make_spec(options), tmp_path / "run").report
    assert report["test"]["accuracy"] == 1.0
    assert report["certificate"]["residual"] <= report["certificate"]["tolerance"]


def test_precision_is_single_unless_asked() -> None:
    spec = make_spec({"dataset": "wine", "model": {"name": "mlp"}})
    assert {p.dtype for p in spec.new_model("node", 3, 2).parameters()} == {torch.float32}
