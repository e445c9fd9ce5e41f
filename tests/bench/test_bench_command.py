"""`gind bench`: what it prints and writes, and refusals in one line."""

import json
from pathlib import Path

import pytest
from bench_cases import quick_report
from cli_cases import command, write_molecules

from gind.bench import read_report, tables
from gind.bench.page import BEGIN, END


def test_it_measures_and_writes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    line = (
        f"bench karate --quick --threads 1 --hidden 4 --json {tmp_path}/r.json --page {page} --out {tmp_path}/figures"
    )
    outcome = command(line)
    assert outcome.code == 0, (outcome.stderr, outcome.error)
    report = read_report(tmp_path / "r.json")
    assert [(case["name"], case["generated"], case["channels"]) for case in report["cases"]] == [("karate", False, 4)]
    assert report["rounds"] == 1
    assert tables([report]) in page.read_text()
    assert (tmp_path / "figures" / "scaling.svg").exists()
    for piece in (
        "karate: 34 nodes, 78 edges, 4 channels",
        "edge-storing",
        "eignn",
        "█",
        "of compute",
        "slope",
        "before, ms",
    ):
        assert piece in outcome.stdout, piece
    assert max(map(len, outcome.stdout.splitlines()[:-4])) <= 80


def test_it_shows_what_was_measured(tmp_path: Path) -> None:
    saved, page = tmp_path / "r.json", tmp_path / "page.md"
    saved.write_text(json.dumps(quick_report()))
    page.write_text(f"{BEGIN}{END}")
    outcome = command(f"bench --from {saved} --from {saved} --page {page}")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.count("shape of texas") == 2
    assert page.read_text().count("shape of texas") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--quick --large", "exclude each other"),
        ("--shape coar", "Did you mean 'cora'"),
        ("coar", "Did you mean 'cora'"),
        ("mutag --data {molecules}", "only one graph"),
        ("--from none.json", "No such file"),
        ("--from {there} --rounds 3", "leave out"),
        ("--from {there} cora", "leave out"),
        ("--from {there} --memory-of solve", "leave out"),
        ("--measure sovle", "Did you mean 'solve'"),
        ("--no-memory --memory-of solve", "left out as well"),
        ("--measure epoch --memory-of solve", "left out as well"),
        ("--from {there}", "not JSON"),
        ("--from {there} --from {there} --out x", "one report"),
        ("--quick --json none/r.json", "no directory none"),
        ("--quick --page {there}", "has no lines"),
        ("--rounds 0", "rounds"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there.json"
    there.write_text("no report")
    molecules = write_molecules(tmp_path / "data") if "molecules" in options else None
    outcome = command(f"bench {options.format(there=there, molecules=molecules)}")
    assert outcome.code == 2
    assert outcome.error is None
    assert message in outcome.stderr
