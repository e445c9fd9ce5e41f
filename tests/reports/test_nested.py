"""Settings chosen fold by fold: validation alone chooses, of candidates that are all there, and the page says which."""

from pathlib import Path

import numpy as np
import pytest
from cli_cases import command
from report_cases import CERTIFICATE, write_report

from gind.errors import UserError
from gind.experiments import ConfigError
from gind.experiments.items import read_item
from gind.experiments.protocol import CHOICES
from gind.experiments.sheet import Cell, Sheet, read_sheet
from gind.reports import Remarks, collect, load_paper, sheet_page
from gind.reports.choose import choose
from gind.reports.figures import draw
from gind.reports.ledger import open_item
from gind.reports.ledger_page import item_page

RNG = np.random.default_rng(0)
VARIANTS = ("", "sum", "wide")
FOLDS = 10


def candidate(variant: str, fold: int, seed: int = 0) -> Cell:
    keys = {"": (), "sum": (("pooling", "sum"),), "wide": (("hidden", 64),)}[variant]
    return Cell("mutag", "gind", fold, seed, keys, variant, results="graphs", choose=True)


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
    assert f"| mutag | {CHOICES['honest']} | 89.3 ± 7.4 |  |  | 50.00 ± 0.00 | -39.30 |" in page
    assert f"| mutag | {CHOICES['nested']} | 89.3 ± 7.4 |  |  | 90.00 ± 0.00 | +0.70 |" in page
    assert "LIB-SVM" not in page, "a protocol that is not there"
    assert f"| mutag | certified, {CHOICES['nested']} |" in page
    assert "certified, wide" not in page
    assert item.only([candidate("sum", 0)]).places == tuple(place for place in item.places if place.variant == "nested")
    figure = draw(item)
    assert figure is not None
    assert [axis.get_title(loc="left") for axis in figure.axes] == [CHOICES["honest"], CHOICES["nested"]]


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
        ('as = "a"\nset = { folds = 5 }', "same parts"),
        ('as = "a"\nset = { splits = "random" }', "same parts"),
        ('as = "a"', "the same keys"),
        ('as = "a"\nset = { data.folds = 5 }', "same parts"),
        ('as = "a"\nset = { hidden = 8 }\n{block}as = "b"\nset = { model.hidden = 8 }', "the same keys"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(tmp_path: Path, second: str, message: str) -> None:
    block = '[[cells]]\ndatasets = ["mutag"]\nmodels = ["gind"]\nsplits = "0"\nchoose = true\n'
    path = tmp_path / "s.toml"
    path.write_text(f"{block}{block}{second.replace('{block}', block)}\n")
    with pytest.raises(ConfigError, match=message):
        read_sheet(path)
    path.write_text(block)
    with pytest.raises(ConfigError, match="two candidates"):
        read_sheet(path)
    path.write_text(f'{block}{block}as = "wide"\nset = {{ hidden = 64 }}\n')
    assert [cell.chosen for cell in read_sheet(path).cells] == ["gind+nested", "gind+nested"]
    other = block.replace('splits = "0"', 'splits = "1"')
    path.write_text(f'{block}{other}as = "wide"\nset = {{ hidden = 64 }}\n')
    with pytest.raises(ConfigError, match="same splits and seeds"):
        read_sheet(path)


def test_seeds_are_chosen_apart_and_counted_once(tmp_path: Path) -> None:
    cells = [candidate(variant, 0, seed) for seed in (0, 1) for variant in VARIANTS]
    for cell in cells:
        best = {0: "sum", 1: "wide"}[cell.seed]
        write(tmp_path, cell, 0.8 if cell.variant == best else 0.7, 1.0, 0.9 if cell.variant == best else 0.5)
    sheet = Sheet("graphs", "Graphs", tuple(cells))
    assert sheet.expected == {
        ("mutag", "gind"): 2,
        ("mutag", "gind+sum"): 2,
        ("mutag", "gind+wide"): 2,
        ("mutag", "gind+nested"): 2,
    }
    row = collect(sheet, tmp_path).row("mutag", "gind+nested")
    assert row is not None
    assert (row.runs, row.expected) == (2, 2)
    assert row.test.mean == pytest.approx(90.0)
    assert sorted(row.chosen.split(", ")) == ["gind+sum 1", "gind+wide 1"]


def test_each_model_has_its_own_choice() -> None:
    cells = [
        Cell("mutag", model, 0, 0, keys, variant, choose=True)
        for model in ("gin", "gind")
        for variant, keys in (("", ()), ("wide", (("hidden", 64),)))
    ]
    assert set(Sheet("s", "S", tuple(cells)).choices) == {("mutag", "gin+nested"), ("mutag", "gind+nested")}


def test_the_most_frequent_choice_is_named_first(tmp_path: Path) -> None:
    cells = [candidate(variant, fold) for fold in range(3) for variant in VARIANTS]
    for cell in cells:
        best = ["sum", "wide", "wide"][cell.split]
        write(tmp_path, cell, 0.8 if cell.variant == best else 0.7, 1.0, 0.5)
    row = collect(Sheet("graphs", "Graphs", tuple(cells)), tmp_path).row("mutag", "gind+nested")
    assert row is not None
    assert row.chosen == "gind+wide 2, gind+sum 1"


def test_other_code_among_the_candidates_is_told_and_other_metrics_are_refused(tmp_path: Path) -> None:
    cells = [candidate(variant, 0) for variant in VARIANTS]
    for cell in cells:
        write(tmp_path, cell, 0.8, 1.0, 0.5)
    sheet = Sheet("graphs", "Graphs", tuple(cells))
    row = collect(sheet, tmp_path).row("mutag", "gind+nested")
    assert row is not None
    assert row.notes == ()
    shares = {"accuracy": 0.7, "loss": 1.0}
    write_report(tmp_path, cells[1], sheet="graphs", validation=shares, test=0.5, versions={"gind": "0.3.0"})
    row = collect(sheet, tmp_path).row("mutag", "gind+nested")
    assert row is not None
    assert row.chosen == "gind 1"
    assert row.notes == ("versions of gind differ between runs",), "also of candidates that were not chosen"
    numbers = {"micro_f1": 0.9, "loss": 1.0}
    write_report(tmp_path, cells[1], sheet="graphs", validation=numbers, test=numbers)
    with pytest.raises(UserError, match="different metrics: accuracy, micro_f1"):
        collect(sheet, tmp_path)


def test_the_page_of_a_sheet_counts_runs_once_and_has_no_settings_for_a_choice(tmp_path: Path) -> None:
    cells = [candidate(variant, fold) for variant in VARIANTS for fold in range(2)]
    for cell in cells:
        shares = {"accuracy": 0.8 if cell.variant == "wide" else 0.7, "loss": 1.0}
        write_report(tmp_path, cell, sheet="graphs", validation=shares, test=0.5, seconds=100.0)
    page = sheet_page(collect(Sheet("graphs", "Graphs", tuple(cells)), tmp_path), load_paper(), Remarks())
    assert "All epochs of all 6 runs, validation included, took 10 min together." in page
    assert "### gind+nested\n\n- mutag: as gind+wide 2\n" in page
    assert f"- `gind+nested`: {CHOICES['nested']}" in page
    assert "| gind+nested | 50.00 ± 0.00 | 2/2 |" in page


def test_the_command_says_what_a_choice_is(tmp_path: Path) -> None:
    block = '[[cells]]\ndatasets = ["mutag"]\nmodels = ["gind"]\nsplits = "0"\nchoose = true\n'
    path = tmp_path / "s.toml"
    path.write_text(f'title = "Graphs"\n{block}{block}as = "wide"\nset = {{ hidden = 64 }}\n')
    for cell in read_sheet(path).cells:
        shares = {"accuracy": 0.8 if cell.variant else 0.7, "loss": 1.0}
        write_report(tmp_path / "results", cell, sheet=path.stem, validation=shares, test=0.9 if cell.variant else 0.5)
    shown = command(f"report {path} --results {tmp_path / 'results'}")
    assert shown.code == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert f"gind+nested: {CHOICES['nested']}." in words
    assert "90.0!" not in words


def test_missing_candidates_of_other_systems_are_counted_by_run(tmp_path: Path) -> None:
    cells = [
        Cell("mutag", "gin", fold, 0, keys, variant, choose=True)
        for variant, keys in (("", ()), ("sum", (("dropout", 0.3),)), ("wide", (("hidden", 64),)))
        for fold in range(3)
    ]
    gind = [Cell("mutag", "gind", fold) for fold in range(3)]
    for cell in [*gind, *cells[3:]]:
        write(tmp_path, cell, 0.8, 1.0, 0.7)
    item = open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", (*gind, *cells)))
    assert "- other systems: 3 runs" in item_page(item, {})
    for path in tmp_path.glob("graphs/mutag/gin*/*/report.json"):
        path.unlink()
    write(tmp_path, gind[0], 0.8, 1.0, 0.7)
    item = open_item("graphs", tmp_path, load_paper(), Sheet("graphs", "Graphs", (*gind, *cells)))
    assert "- other systems: 9 runs" in item_page(item, {})
