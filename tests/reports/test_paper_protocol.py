"""Reports of the paper's protocol: the epoch that ten curves choose, and that every page says what chose it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import content, sheet_of, write_report

from gind.errors import UserError
from gind.experiments.items import read_item
from gind.experiments.protocol import CHOICES
from gind.experiments.sheet import Cell, Sheet
from gind.reports import collect, load_paper, sheet_page
from gind.reports.figures import draw
from gind.reports.html import html_page
from gind.reports.ledger import open_item
from gind.reports.ledger_page import item_page
from gind.reports.remarks import Remarks, read_remarks

WORDS = CHOICES["paper"]
RNG = np.random.default_rng(0)
CURVES = np.round(RNG.integers(7, 18, size=(10, 30)) / 19, 5)


def cells(model: str = "gind-published", folds: int = 10) -> list[Cell]:
    keys = (("protocol", "paper"),)
    return [Cell("mutag", model, fold, keys=keys, variant="paper", results="graphs") for fold in range(folds)]


def write_curves(results: Path, chosen: list[Cell], curves: Any = CURVES, sheet: str = "graphs") -> None:
    for cell, curve in zip(chosen, curves, strict=False):
        # what lies in `test` is of the last epoch, and must not be read
        write_report(results, cell, sheet=sheet, test=0.0, validation=None, curve=[float(value) for value in curve])


def oracle(curves: Any) -> tuple[int, float, float]:
    """Epoch from 0, mean and sample deviation in percent."""
    mean = curves.mean(axis=0)
    epoch = int(np.flatnonzero(np.isclose(mean, mean.max(), rtol=0, atol=1e-9))[0])
    return epoch, 100 * curves[:, epoch].mean(), 100 * curves[:, epoch].std(ddof=1)


def test_ten_curves_choose_one_epoch_together(tmp_path: Path) -> None:
    write_curves(tmp_path, cells())
    (row,) = collect(sheet_of(*reversed(cells()), name="graphs"), tmp_path).rows
    epoch, mean, std = oracle(CURVES)
    assert row.test.mean == pytest.approx(mean, abs=1e-9)
    assert row.test.std == pytest.approx(std, abs=1e-9)
    assert [single.test for single in row.singles] == pytest.approx(100 * CURVES[:, epoch])
    assert mean < 100 * CURVES.max(axis=1).mean(), "each fold at its own best epoch would be another protocol"
    assert (row.protocol, row.folds, row.validation) == ("paper", 10, None)
    assert row.notes == (f"{WORDS} (epoch {epoch + 1} of 30)",)


def test_of_equal_epochs_the_first_is_taken(tmp_path: Path) -> None:
    curves = np.full((10, 4), 0.5)
    curves[0, 1:] = [0.9, 0.5, 0.9]
    curves[1, 1:] = [0.5, 0.9, 0.5]
    write_curves(tmp_path, cells(), curves)
    (row,) = collect(sheet_of(*cells(), name="graphs"), tmp_path).rows
    assert row.notes == (f"{WORDS} (epoch 2 of 4)",)
    assert [single.test for single in row.singles[:2]] == [90.0, 50.0]


def test_one_fold_is_there(tmp_path: Path) -> None:
    write_curves(tmp_path, cells()[:1])
    (row,) = collect(sheet_of(*cells(), name="graphs"), tmp_path).rows
    assert "1 of 10 folds is there" in row.notes


@pytest.mark.parametrize("asked", [10, 3])
def test_fewer_folds_are_incomplete_however_many_the_sheet_asks_for(tmp_path: Path, asked: int) -> None:
    write_curves(tmp_path, cells()[:3])
    collection = collect(sheet_of(*cells(folds=asked), name="graphs"), tmp_path)
    assert "3 of 10 folds are there" in collection.rows[0].notes
    page = sheet_page(collection, load_paper(), Remarks())
    assert "3 of 10 folds are there" in page
    _, mean, std = oracle(CURVES[:3])
    item = open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", tuple(cells(folds=asked))))
    page = item_page(item, {})
    assert f"| mutag | {WORDS} | 89.3 ± 7.4 | {mean:.2f} ± {std:.2f} (3/10 folds) |  |" in page
    assert "points from the paper" not in page  # far away, but of three folds the best epoch is luck


def test_both_protocols_stand_beside_each_other_and_each_says_what_chose(tmp_path: Path) -> None:
    honest = [Cell("mutag", "gind-published", fold, results="graphs") for fold in range(10)]
    for cell in honest:
        write_report(tmp_path, cell, sheet="graphs", test=0.75)
    write_curves(tmp_path, cells())
    gin = [Cell("mutag", "gin", 0, results="graphs", keys=(("protocol", "paper"),), variant="paper")]
    write_curves(tmp_path, gin)
    sheet = Sheet("graphs", "Graphs", (*honest, *cells(), *gin))
    item = open_item("graphs", tmp_path, load_paper(), sheet)
    page = item_page(item, {})
    _, mean, std = oracle(CURVES)
    difference = f"{mean - 89.3:+.2f}"
    assert f"| mutag | {CHOICES['honest']} | 89.3 ± 7.4 | 75.00 ± 0.00 | -14.30 |" in page
    assert f"| mutag | {WORDS} | 89.3 ± 7.4 | {mean:.2f} ± {std:.2f} | {difference} |" in page
    assert abs(mean - 89.3) > 2
    assert f"- mutag: published, {WORDS}, is {89.3 - mean:.2f} points below the paper." in page
    assert "test labels choose the epoch" in page
    assert f"| gin, {WORDS} |" in page
    assert f"| mutag | published, {WORDS} |" in page.split("Split by split")[1]
    assert html_page([item]).count(WORDS) >= page.count(WORDS)
    own = sheet_page(collect(sheet, tmp_path), load_paper(), Remarks())
    assert f"`gind-published+paper`, `gin+paper`: {WORDS}; no part validates." in own
    assert f"- gind-published+paper on mutag: {WORDS}" in own
    figure = draw(item)
    assert figure is not None
    titles = [CHOICES[protocol] for protocol in ("honest", "last", "paper")]
    assert [axis.get_title(loc="left") for axis in figure.axes] == titles


def test_the_same_runs_are_read_at_their_last_epoch_too(tmp_path: Path) -> None:
    gin = cells("gin")
    write_curves(tmp_path, cells())
    write_curves(tmp_path, gin, CURVES[::-1])
    item = open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", (*cells(), *gin)))
    page = item_page(item, {})
    last = 100 * CURVES[:, -1]
    shown, nothing = f"{last.mean():.2f} ± {last.std(ddof=1):.2f}", CHOICES["last"]
    assert last.mean() < oracle(CURVES)[1]
    assert f"| mutag | {nothing} | 89.3 ± 7.4 | {shown} | {last.mean() - 89.3:+.2f} |" in page
    assert f"| gin, {nothing} | {shown} " in page
    assert f"| gin, {WORDS} | {oracle(CURVES)[1]:.2f} " in page
    singles = " | ".join(f"{test:.2f}" for test in last)
    assert f"| mutag | published, {nothing} | {singles} |" in page.split("Split by split")[1]
    # a lower reading of runs that the page has already: neither far from the paper, nor other residuals or runs
    far = page.split("points from the paper")[1]
    assert nothing not in far.split("Split by split")[0]
    assert item.done == item.total == 20


def test_who_is_ahead_is_said_of_one_reading(tmp_path: Path) -> None:
    gin = cells("gin")
    write_curves(tmp_path, cells(), CURVES / 2)
    write_curves(tmp_path, gin)
    item = open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", (*cells(), *gin)))
    page = item_page(item, {})
    (ahead,) = page.split("Other systems above the published GIND")[1:]
    points = 100 * CURVES[:, oracle(CURVES)[0]] / 2
    assert [line for line in ahead.splitlines() if line.startswith("- mutag: gin")] == [
        f"- mutag: gin+paper {oracle(CURVES)[1]:.2f} ({points.mean():+.2f} ± {points.std(ddof=1) / 10**0.5:.2f})"
    ]


def test_the_last_epoch_of_missing_runs_is_missing(tmp_path: Path) -> None:
    write_curves(tmp_path, cells()[:3])
    page = item_page(open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", tuple(cells()))), {})
    last = 100 * CURVES[:3, -1]
    shown = f"{last.mean():.2f} ± {last.std(ddof=1):.2f}"
    assert f"| mutag | {CHOICES['last']} | 89.3 ± 7.4 | {shown} (3/10 folds) |  |" in page
    assert page.split("Missing:")[1].count("splits 3-9 of mutag") == 1


def test_a_page_without_the_papers_protocol_does_not_speak_of_it(tmp_path: Path) -> None:
    cell = Cell("mutag", "gind", 0)
    write_report(tmp_path, cell, sheet="graphs")  # an old report: no protocol, no curve
    item = open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", (cell,)))
    page = item_page(item, {}) + sheet_page(collect(sheet_of(cell, name="graphs"), tmp_path), load_paper(), Remarks())
    assert "test curve" not in page
    assert "protocol" not in page
    assert "| mutag | 89.3 ± 7.4 |  |  | 50.00 |" in page


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        (None, "curve must be a list"),
        ([], "curve must be a list"),
        ("0.5", "curve must be a list"),
        ([0.5, None], r"curve\[1\] must be a number"),
        ([0.5, 65.0], "share from 0 to 1, got 65"),
    ],
)
def test_what_is_no_curve_is_refused(tmp_path: Path, curve: Any, message: str) -> None:
    path = write_report(tmp_path, cells()[0], validation=None, curve=curve)
    with pytest.raises(UserError, match=message) as caught:
        collect(sheet_of(Cell(**{**vars(cells()[0]), "results": "s"})), tmp_path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_curves_of_different_lengths_have_no_mean(tmp_path: Path) -> None:
    write_curves(tmp_path, cells()[:2], [[0.5, 0.6], [0.5]])
    with pytest.raises(UserError, match="have 1 to 2 epochs, so they have no mean"):
        collect(sheet_of(*cells(), name="graphs"), tmp_path)


def test_a_curve_cannot_pass_for_an_honest_result(tmp_path: Path) -> None:
    cell, (paper, *_) = Cell("mutag", "gind", 0), cells("gind")
    write_report(tmp_path, cell, config=content(paper)["config"], curve=[0.9])
    with pytest.raises(UserError, match="protocol 'paper', not 'honest'"):
        collect(sheet_of(cell), tmp_path)


def test_the_item_asks_for_ten_folds_of_both_profiles_under_both_protocols() -> None:
    sheet = read_item("graphs")
    assert sheet is not None
    for model in ("gind", "gind-published"):
        for dataset in ("mutag", "ptc_mr", "cox2", "proteins", "nci1"):
            for protocol, system in (("honest", model), ("paper", f"{model}+paper")):
                asked = [c for c in sheet.cells if (c.system, c.dataset, c.protocol) == (system, dataset, protocol)]
                assert sorted(cell.split for cell in asked) == list(range(10))
    alone = sheet.select(["mutag"], ["gind-published+paper"], [])
    assert {cell.protocol for cell in alone.cells} == {"paper"}
    assert len(alone.cells) == 10


def test_remarks_may_be_on_a_variant(tmp_path: Path) -> None:
    folder = tmp_path / "remarks"
    folder.mkdir()
    (folder / "graphs.toml").write_text('["gind-published+paper"]\nall = "why"\n')
    sheet = sheet_of(*cells(), name="graphs")
    assert read_remarks(tmp_path / "graphs.toml", sheet).find("gind-published+paper", "mutag") == "why"
    assert read_remarks(tmp_path / "graphs.toml", sheet).find("gind-published", "mutag") == ""
