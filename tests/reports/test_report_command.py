"""`gind report`: a page, a printed table, and refusals in one line."""

from pathlib import Path

import pytest
from cli_cases import command
from report_cases import write_report, write_sheet

from gind.experiments.sheet import Cell, read_sheet
from gind.reports import Remarks, collect, load_paper, sheet_page


def test_it_writes_the_page(tmp_path: Path) -> None:
    sheet, results, out = write_sheet(tmp_path, ["texas"], ["gcn", "gind"]), tmp_path / "results", tmp_path / "page.md"
    write_report(results, Cell("texas", "gcn", 0))
    for _ in range(2):  # also over the page that is there
        outcome = command(f"report {sheet} --results {results} --out {out}")
        assert outcome.code == 0, outcome.stderr
        assert "5 of 6 runs are missing; 1 of 2 cells are empty." in outcome.stdout
        expected = sheet_page(collect(read_sheet(sheet), results), load_paper(), Remarks())
        assert out.read_bytes() == expected.encode()


def test_it_prints_a_table(tmp_path: Path) -> None:
    sheet, results = write_sheet(tmp_path, ["texas", "wine"], ["gcn", "gind"]), tmp_path / "results"
    write_report(results, Cell("texas", "gcn", 0), test=0.655)
    write_report(results, Cell("texas", "gind", 0), test=0.5)
    write_report(results, Cell("wine", "gcn", 0), test=0.75)
    outcome = command(f"report {sheet} --results {results}")
    assert outcome.code == 0, outcome.stderr
    for piece in ("65.5~ (64.0)", "50.0~ (86.2)", "- (84.8)", "75.0~", "9 of 12 runs are missing"):
        assert piece in outcome.stdout, piece
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "s.toml"]


def test_without_any_report_no_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for line in ("report", "report --results empty", "report --html x.html", "report --out x.md", "report graphs"):
        outcome = command(line)
        assert (outcome.code, outcome.stderr.count("\n")) == (2, 1), line
        assert "There is no report in" in outcome.stderr
        assert "gind reproduce ITEM" in outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    sheet, results = write_sheet(tmp_path, ["texas"], ["gcn"]), tmp_path / "results"
    outcome = command(f"report {sheet} --results {results}")
    assert (outcome.code, outcome.stderr.count("\n")) == (2, 1)
    assert "no report of the sheet s" in outcome.stderr
    broken = write_report(results, Cell("texas", "gcn", 0))
    broken.write_text("{")
    outcome = command(f"report {sheet} --results {results}")
    assert (outcome.code, outcome.stderr.count("\n")) == (2, 1)
    assert str(broken) in outcome.stderr
    write_report(results, Cell("texas", "gcn", 0))
    for line in (f"report {tmp_path}/none.toml", f"report {sheet} --results {results} --out {tmp_path}/no/page.md"):
        outcome = command(line)
        assert (outcome.code, outcome.stderr.count("\n")) == (2, 1), line
        assert ".part" not in outcome.stderr


@pytest.mark.parametrize("text", ["{", '{"model": "mlp"}'])
def test_a_broken_report_elsewhere_is_missing_where_others_were_run(tmp_path: Path, text: str) -> None:
    for seed in range(5):
        write_report(tmp_path, Cell("texas", "gind", 3, seed), sheet="baselines", test=0.8125)
    broken = write_report(tmp_path, Cell("texas", "mlp", 0), sheet="baselines")
    broken.write_text(text)
    outcome = command(f"reproduce heterophilic --dataset texas --model gind --splits 3 --results {tmp_path}")
    assert outcome.code == 0, outcome.stderr
    assert "81.25" in outcome.stdout
    (line,) = (line for line in outcome.stdout.splitlines() if str(broken) in line)
    assert line.startswith("Missing: ")
    for item in ("heterophilic", ""):
        outcome = command(f"report {item} --results {tmp_path} --out {tmp_path}/page.md")
        assert (outcome.code, outcome.stderr.count("\n")) == (2, 1), outcome.stdout
        assert str(broken) in outcome.stderr
    assert not (tmp_path / "page.md").exists()


def test_reproduce_shows_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for dataset in ("texas", "wisconsin"):
        for seed in range(5):
            write_report(tmp_path, Cell(dataset, "gind", 3, seed), sheet="baselines", test=0.8125)
    outcome = command(f"reproduce heterophilic --dataset texas --model gind --splits 3 --results {tmp_path}")
    assert outcome.code == 0, outcome.stderr
    assert "81.25 ± 0.00 (5/50)" in outcome.stdout, "of all that the item asks for"
    assert "wisconsin" not in outcome.stdout.split("Nodes of heterophilic graphs")[1].split("Other")[0]
    assert "certified: splits 0-2, 4-9 of texas" in outcome.stdout
