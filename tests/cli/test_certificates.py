"""What certify and predict say about equilibria of every kind of model: a distance where there is a proof, or none."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_cases import TINY, command, write_graph, write_molecules

PROVEN = {
    "gind": "graph",
    "eignn": "graph --model eignn",
    "ignn": "graph --model ignn",
    "cgs": "mutag --data data --model cgs",
    "fdgnn": "mutag --data data --model fdgnn --set stability=norm --set degree=2.0",
}
OPEN = {
    "live": "graph --set edge_norm=live --set stop.max_steps=20",
    # degrees are 2: the spectral radius of the map is above 1, and so is its norm
    "fdgnn-radius": "mutag --data data --model fdgnn --set stability=radius --set degree=1.9 --set factor=0.99",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with a trained run of each."""
    directory, before = tmp_path_factory.mktemp("certificates"), Path.cwd()
    write_graph(directory / "graph")
    write_molecules(directory / "data")
    os.chdir(directory)
    for name, line in {**PROVEN, **OPEN}.items():
        outcome = command(f"train {line} {TINY} --out {name}")
        assert outcome.code == 0, outcome
    yield directory
    os.chdir(before)


def said(name: str) -> tuple[dict[str, object], str, str]:
    """The certificate as JSON, what certify prints, and what predict prints."""
    table, text, predicted = (
        command(f"{line} {name} --data data --threads 1{more}")
        for line, more in (("certify", " --json"), ("certify", ""), ("predict", ""))
    )
    assert predicted.code == 0, predicted
    return json.loads(table.stdout), text.stdout, predicted.stdout


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_distance_is_printed(place: Path, name: str) -> None:
    table, text, predicted = said(name)
    assert table["proven"]
    bound = f"{table['bound']:.3e}"
    assert "≤" in text
    assert bound in text
    assert f"distance to the equilibrium ≤ {bound}" in predicted
    for printed in (text, predicted):
        assert "no bound" not in printed.lower()
        assert "no energy" not in printed


@pytest.mark.parametrize("name", OPEN)
def test_a_residual_without_proof_says_so(place: Path, name: str) -> None:
    table, text, predicted = said(name)
    assert not table["proven"]
    for printed in (text, predicted):
        assert f"residual {table['residual']:.3e}" in printed.lower()
        assert "no bound of the distance to the equilibrium" in printed
        assert "inf" not in printed


def test_where_no_tolerance_was_asked_none_is_missed(place: Path) -> None:
    outcome = command("train graph --model gind-published --threads 1 --set hidden=4 --set epochs=2 --out published")
    assert outcome.code == 0, outcome
    assert "no tolerance asked" in outcome.stdout
    for words in (" open", "NOT reached", "did not reach"):
        assert words not in outcome.stdout
    assert json.loads((place / "published/report.json").read_text())["training"]["unsolved"] == 0
    lines = (place / "published/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["open"] for line in lines] == [0, 0]
