"""Settings chosen fold by fold: validation alone chooses, of candidates that are all there, and the page says which."""

from pathlib import Path

import numpy as np
import pytest
from report_cases import CERTIFICATE, write_report

from gind.experiments import ConfigError
from gind.experiments.items import read_item
from gind.experiments.protocol import CHOICES
from gind.experiments.sheet import Cell, Sheet, read_sheet
from gind.reports import collect, load_paper
from gind.reports.choose import choose
from gind.reports.figures import draw
from gind.reports.ledger import open_item
from gind.reports.ledger_page import item_page

RNG = np.random.default_rng(0)
VARIANTS = ("", "sum", "wide")
FOLDS = 10


def candidate(variant: str, fold: int, seed: int = 0) -> Cell:
    keys = {"": (), "sum": (("pooling", "sum"),), "wide": (("hidden", 64),)}[variant]
    return Cell("mutag", "gind", fold, seed, keys, variant, results="graphs", choose="nested")


CELLS = [candidate(variant, fold) for variant in VARIANTS for fold in range(FOLDS)]
SHEET = Sheet("graphs", "Graphs", tuple(CELLS))


def write(results: Path, cell: Cell, validation: float, loss: float, test: float) -> None:
    shares = {"accuracy": validation, "loss": loss}
    write_report(results, cell, sheet="graphs", validation=shares, test=test, certificate=CERTIFICATE)


def test_each_fold_takes_the_candidate_that_validates_best(tmp_path: Path) -> None:
    validation = RNG.integers(5, 18, size=(3, FOLDS)) / 19
    loss, test = RNG.random((3, FOLDS)), RNG.integers(5, 19, size=(3, FOLDS)) / 19
    for c, variant in enumerate(VARIANTS):
        for fold in range(FOLDS):
            write(tmp_path, candidate(variant, fold), validation[c, fold], loss[c, fold], test[c, fold])
    best = [min(range(3), key=lambda c: (-validation[c, fold], loss[c, fold])) for fold in range(FOLDS)]
    expected = [100 * test[c, fold] for fold, c in enumerate(best)]
    assert len(set(best)) > 1
    collection = collect(SHEET, tmp_path)
    row = collection.row("mutag", "gind+nested")
    assert row is not None
    assert [single.test for single in row.singles] == pytest.approx(expected)
    assert row.test.mean == pytest.approx(np.mean(expected))
    assert (row.protocol, row.runs, row.expected) == ("nested", FOLDS, FOLDS)
    counts = {part.rsplit(" ", 1)[0]: int(part.rsplit(" ", 1)[1]) for part in row.chosen.split(", ")}
    names = ["gind", "gind+sum", "gind+wide"]
    assert counts == {names[c]: best.count(c) for c in set(best)}
    plain = collection.row("mutag", "gind")
    assert plain is not None
    assert plain.test.mean == pytest.approx(100 * test[0].mean()), "a candidate keeps its own row"


@pytest.mark.parametrize(
    ("numbers", "chosen"),
    [
        ([(0.7, 0.5), (0.8, 0.9), (0.8, 0.9)], 1),
        ([(0.8, 0.5), (0.8, 0.4), (0.8, 0.4)], 1),
        ([(0.8, 0.4), (0.8, 0.4), (0.8, 0.4)], 0),
        ([(0.8, None), (0.8, 0.9), (0.7, 0.1)], 1),
    ],
    ids=["metric first", "then loss", "then the sheet", "a loss that was not finite"],
)
def test_equal_candidates_have_an_order(tmp_path: Path, numbers: list[tuple[float, float]], chosen: int) -> None:
    cells = [candidate(variant, 0) for variant in VARIANTS]
    for cell, (validation, loss), test in zip(cells, numbers, (0.1, 0.2, 0.3), strict=True):
        write(tmp_path, cell, validation, loss, test)
    row = collect(Sheet("graphs", "Graphs", tuple(cells)), tmp_path).row("mutag", "gind+nested")
    assert row is not None
    assert row.test.mean == pytest.approx((10, 20, 30)[chosen])


def test_test_labels_choose_nothing(tmp_path: Path) -> None:
    cells = [candidate(variant, 0) for variant in VARIANTS]
    for tests in ((0.1, 0.5, 0.9), (0.9, 0.5, 0.1)):
        for cell, test in zip(cells, tests, strict=True):
            write(tmp_path, cell, 0.6 + 0.1 * (cell.variant == "sum"), 1.0, test)
        row = collect(Sheet("graphs", "Graphs", tuple(cells)), tmp_path).row("mutag", "gind+nested")
        assert row is not None
        assert row.chosen == "gind+sum 1"


def test_nothing_is_chosen_before_all_candidates_are_there(tmp_path: Path) -> None:
    for cell in CELLS:
        if (cell.variant, cell.split) != ("wide", 3):
            write(tmp_path, cell, 0.8, 1.0, 0.7)
    item = open_item("graphs", tmp_path, load_paper(), SHEET)
    (place,) = [place for place in item.places if place.variant == "nested"]
    assert (place.lacking, place.missing, place.mean) == ("9/10", (3,), None)
    assert f"certified, {CHOICES['nested']}: splits 3 of mutag" in item_page(item, {})
    assert choose([candidate("", 0), candidate("sum", 0)], {}) == []


def test_the_page_shows_what_was_chosen_and_no_row_for_candidates(tmp_path: Path) -> None:
    for cell in CELLS:
        write(tmp_path, cell, 0.8 if cell.variant == "wide" else 0.7, 1.0, 0.9 if cell.variant == "wide" else 0.5)
    item = open_item("graphs", tmp_path, load_paper(), SHEET)
    assert {place.system for place in item.places} == {"gind", "gind+nested"}
    page = item_page(item, {})
    assert "- mutag: gind+wide 10" in page
    assert "50.00 ± 0.00" in page
    assert "90.00 ± 0.00" in page
    assert f"| mutag | certified, {CHOICES['nested']} |" in page
    assert "certified, wide" not in page
    assert item.only([candidate("sum", 0)]).places == tuple(place for place in item.places if place.variant == "nested")
    assert draw(item) is not None


def test_the_item_asks_for_candidates_of_every_dataset() -> None:
    sheet = read_item("graphs")
    assert sheet is not None
    assert {dataset for dataset, _ in sheet.choices} == {"mutag", "ptc_mr", "cox2", "proteins", "nci1"}
    chosen = sheet.select(["mutag"], ["gind+nested"], [])
    assert {cell.system for cell in chosen.cells} == {"gind", "gind+sum", "gind+dropout", "gind+wide"}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('as = "nested"', "a variant and a choice"),
        ('as = "a"\nset = { protocol = "paper" }', "does not have"),
        ('as = "a"\nseeds = [1]', "same splits and seeds"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(tmp_path: Path, second: str, message: str) -> None:
    block = '[[cells]]\ndatasets = ["mutag"]\nmodels = ["gind"]\nsplits = "0"\nchoose = "nested"\n'
    path = tmp_path / "s.toml"
    path.write_text(f"{block}{block}{second}\n")
    with pytest.raises(ConfigError, match=message):
        read_sheet(path)
    path.write_text(block)
    with pytest.raises(ConfigError, match="two candidates"):
        read_sheet(path)
    path.write_text(f'{block}{block}as = "wide"\nset = {{ hidden = 64 }}\n')
    assert [cell.chosen for cell in read_sheet(path).cells] == ["gind+nested", "gind+nested"]
