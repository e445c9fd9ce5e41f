"""`gind reproduce`: the list of items, all of them in small, and what is refused."""

from pathlib import Path

import pytest
from cli_cases import command, write_molecules

from gind.experiments.items import ITEMS


def test_it_lists_the_items(tmp_path: Path) -> None:
    outcome = command(f"reproduce --results {tmp_path}")
    assert outcome.code == 0, outcome.stderr
    for name, label in ITEMS.items():
        line = next(line for line in outcome.stdout.splitlines() if line.split()[:1] == [name])
        assert (label or "ours") in line
    assert "0/10" in outcome.stdout  # PPI


def test_quick_runs_every_kind_of_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    data = write_molecules(tmp_path / "data", graphs=12)
    outcome = command(f"reproduce --quick --data {data}")
    assert outcome.code == 0, outcome.stdout
    assert " 0 failed" in outcome.stdout
    assert "missing" not in outcome.stdout
    assert "ppi: no small data is there" in outcome.stdout
    for text in ("mutag", "chains", "wine", "exact gradient", "Dirichlet energy", "ratio"):
        assert text in outcome.stdout, text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for line, message in (
        ("reproduce heterophylic", "Did you mean 'heterophilic'"),
        ("reproduce --quick my.toml", "--quick is for the items"),
        ("reproduce homophilic --dataset texas", "homophilic has no dataset 'texas'"),
        (f"reproduce {tmp_path}/none.toml", "There is no file"),
        ("report grahps", "Did you mean 'graphs'"),
        (f"report graphs --out {tmp_path}/no/page.md", "no directory"),
    ):
        outcome = command(line)
        assert (outcome.code, outcome.stderr.count("\n")) == (2, 1), line
        assert message in outcome.stderr, outcome.stderr


def test_nothing_has_to_be_run_for_a_function() -> None:
    outcome = command("reproduce activation")
    assert outcome.code == 0
    assert "nothing to run" in outcome.stdout
