"""A report has its schema, its page and its figure; the committed page is that of the committed reports."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from bench_cases import QUICK, quick_report

from gind.bench import BenchError, Report, bench, embed, read_report, tables
from gind.bench.figure import write_figure
from gind.bench.page import BEGIN, END
from gind.bench.roofline import fractions
from gind.bench.schema import check
from gind.bench.words import bytes_, rate, seconds
from gind.graph import Graph

ROOT = Path(__file__).parents[2]


def test_a_report_has_its_schema_and_survives_its_file(tmp_path: Path) -> None:
    report = quick_report()
    assert check(report, Report) == ""
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    assert read_report(path) == report


def test_ratios_and_slopes_follow_from_the_times_given() -> None:
    report = quick_report()
    for case in report["cases"]:
        for group in case["groups"]:
            first = group["contenders"][0]["seconds"]
            for entry in group["contenders"]:
                assert entry["seconds"] == min(entry["rounds"])
                assert len(entry["rounds"]) == report["rounds"]
                assert entry["ratio"] == entry["seconds"] / first
        assert case["flux"]["rate"] == pytest.approx(case["edges"] * case["channels"] / case["flux"]["seconds"])
        assert case["flux"]["of_tanh"] == pytest.approx(case["flux"]["rate"] / report["peaks"]["tanh"])
        assert case["flux"]["of_compute"] == pytest.approx(case["flux"]["rate"] / report["peaks"]["edge"])
    assert [curve["variable"] for curve in report["scaling"]] == ["edges", "nodes", "channels"]


def test_threads_are_as_they_were() -> None:
    before = torch.get_num_threads()
    heard: list[str] = []
    report = bench(QUICK, heard.append)
    assert torch.get_num_threads() == before
    assert report["machine"]["threads"] == 1
    assert "texas: iteration" in heard


def test_traffic_counts_rows_and_edges_once() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
    peaks: Any = {"tanh": 2.0, "edge": 1.0, "triad_one_thread": 1.0}
    found = fractions(graph, 4, 8.0, peaks)
    least = 2 * 3 * 4 * 4 + 8 * (2 + 4)
    assert (found["rate"], found["of_tanh"], found["of_compute"]) == (1.0, 0.5, 1.0)
    assert found["of_bandwidth"] == least / 8
    assert found["of_bandwidth_uncached"] == (least + 3 * 2 * 4 * 4) / 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop("peaks"), r"other fields \(peaks\)"),
        (lambda r: r.update(rounds="1"), "report.rounds is '1'"),
        (lambda r: r.update(rounds=True), "report.rounds is True"),
        (
            lambda r: r["cases"][0]["groups"][0]["contenders"][1].update(seconds=None),
            r"contenders\[1\].seconds is None",
        ),
        (lambda r: r["machine"].update(extra=1), "extra"),
        (lambda r: r.update(format=0), "no report of gind bench"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    report = copy.deepcopy(quick_report())
    change(report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    with pytest.raises(BenchError, match=message):
        read_report(path)
    path.write_text("{")
    with pytest.raises(BenchError, match="not JSON"):
        read_report(path)


def test_a_page_keeps_its_text_and_gets_every_number() -> None:
    report = quick_report()
    page = embed(f"above\n\n{BEGIN}\nold\n{END}\n\nbelow\n", [report])
    assert page.startswith("above\n")
    assert page.endswith("\nbelow\n")
    assert "old" not in page
    assert embed(page, [report]) == page
    for case in report["cases"]:
        for group in case["groups"]:
            for entry in group["contenders"]:
                row = f"| {group['measure']} | {entry['name']} | {seconds(entry['seconds'])} | {entry['ratio']:.2f} |"
                assert row in page
    with pytest.raises(BenchError, match="has no lines"):
        embed("a page", [report])


def test_figures_are_png_and_svg(tmp_path: Path) -> None:
    paths = write_figure(quick_report(), tmp_path / "new")
    assert [path.name for path in paths] == ["scaling.png", "scaling.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in paths[1].read_bytes()


def test_numbers_in_words() -> None:
    assert [seconds(t) for t in (1.234, 0.99996, 0.0456, 0.000789)] == ["1.23 s", "1.00 s", "45.6 ms", "789 µs"]
    assert [bytes_(b) for b in (None, 3 * 2**19, 5 * 2**30)] == ["-", "1.5 MiB", "5.00 GiB"]
    assert [rate(r, "B/s") for r in (1.5e12, 23.4e9, 12.0)] == ["1.50 TB/s", "23.4 GB/s", "12.0 B/s"]


def test_the_committed_page_is_that_of_the_committed_reports() -> None:
    paths = sorted((ROOT / "results" / "bench").glob("*.json"))
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    again = "gind bench " + " ".join(f"--from {path.relative_to(ROOT)}" for path in paths)
    assert embed(page, [read_report(path) for path in paths]) == page, f"run: {again} --page docs/performance.md"
    assert tables([]) in page or paths
