"""Short trainings on real data: how much better than what knows nothing."""

from pathlib import Path
from typing import Any

import pytest
from real_data import ROOT, need

from gind.experiments import make_spec, run


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
    report = train(tmp_path, "mutag", hidden=8, epochs=12, lr=0.03, batch_size=64, dropout=0.0)
    assert report["test"]["accuracy"] > 0.5
    assert report["validation"]["accuracy"] >= 0.7


@pytest.mark.parametrize("classes", [2, 3])
def test_chains_of_length_10_are_solved(tmp_path: Path, classes: int) -> None:
    """The class stands at the first node only; the last one is nine hops away."""
    report = train(tmp_path, "chains", classes=classes, length=10, hidden=8, epochs=40, lr=0.1, implicit_lr=0.02)
    assert report["test"]["accuracy"] == 1.0
