"""How sure a mean is: seeds and paired differences, against NumPy; what is missing is left out."""

from pathlib import Path

import numpy as np
import pytest
from report_cases import write_report

from gind.experiments.sheet import Cell, Sheet
from gind.reports import load_paper
from gind.reports.ledger import Item, open_item
from gind.reports.ledger_page import item_page
from gind.reports.ledger_spread import paired, seeds

RNG = np.random.default_rng(0)


def item_of(name: str, results: Path, cells: list[Cell]) -> Item:
    return open_item(name, results, load_paper(), Sheet(name, "A sheet", tuple(cells)))


def test_means_by_seed_are_those_of_numpy(tmp_path: Path) -> None:
    cells = [Cell("texas", model, split, seed) for model in ("gind", "mlp") for split in (0, 1, 2) for seed in (0, 3)]
    tests = RNG.random((2, 3, 2))
    for cell, test in zip(cells, tests.ravel().tolist(), strict=True):
        write_report(tmp_path, cell, sheet="heterophilic", test=test)
    item = item_of("heterophilic", tmp_path, cells)
    means = 100 * tests.mean(axis=1)
    rows = [
        f"| texas | {name} | {first:.2f} | {second:.2f} | {np.std([first, second], ddof=1):.2f} |"
        for name, (first, second) in zip(("certified", "mlp"), means, strict=True)
    ]
    assert "| dataset | system | seed 0 | seed 3 | ± |" in seeds(item)
    assert [line for line in seeds(item) if line.startswith("| texas")] == rows
    assert "\n".join(seeds(item)) in item_page(item, {})


def test_one_seed_or_a_missing_run_says_nothing_about_seeds(tmp_path: Path) -> None:
    single = [Cell("texas", "gind", split) for split in (0, 1)]
    several = [Cell("wisconsin", "gind", 0, seed) for seed in (0, 1, 2)]
    for cell in [*single, *several[:2]]:
        write_report(tmp_path, cell, sheet="heterophilic", test=0.5)
    assert seeds(item_of("heterophilic", tmp_path, [*single, *several])) == []


def rows_of(name: str, splits: int) -> list[Cell]:
    linear, plain = (("activation", "identity"),), ()
    return [
        Cell("wisconsin", name, split, 0, keys, variant, row=row)
        for variant, keys, row in (("linear", linear, "Linear"), ("", plain, "Nonlinear"))
        for split in range(splits)
    ]


def test_rows_are_compared_split_by_split(tmp_path: Path) -> None:
    cells = [*rows_of("gind", 5), *rows_of("gind-published", 5)]
    tests = RNG.random((2, 2, 5))
    for cell, test in zip(cells, tests.ravel().tolist(), strict=True):
        write_report(tmp_path, cell, sheet="nonlinearity", test=test)
    item = item_of("nonlinearity", tmp_path, cells)
    certified, published = 100 * (tests[:, 1] - tests[:, 0])
    shown = [f"{apart.mean():+.2f} ± {apart.std(ddof=1) / 5**0.5:.2f}" for apart in (published, certified)]
    expected = f"| wisconsin | Nonlinear - Linear | {shown[0]} | {shown[1]} |"
    assert expected in paired(item, item.tables[0])
    assert expected in item_page(item, {})
    assert paired(item, item.tables[1]) == [], "seconds are not points"


def test_seeds_on_other_splits_are_not_compared(tmp_path: Path) -> None:
    cells = [*(Cell("texas", "gind", split) for split in range(4)), Cell("texas", "gind", 0, 1)]
    for cell in cells:
        write_report(tmp_path, cell, sheet="heterophilic", test=0.9 if cell.split == 0 else 0.5)
    assert seeds(item_of("heterophilic", tmp_path, cells)) == []


def test_protocols_are_not_mixed(tmp_path: Path) -> None:
    tests = {
        ("Linear", "honest"): 0.5,
        ("Linear", "paper"): 0.7,
        ("Nonlinear", "honest"): 0.6,
        ("Nonlinear", "paper"): 0.9,
    }
    cells = []
    for (row, protocol), test in tests.items():
        keys = (("protocol", "paper"),) if protocol == "paper" else ()
        for fold in range(10):
            cell = Cell("mutag", "gind", fold, 0, keys, f"{row}-{protocol}", row=row)
            cells.append(cell)
            last = {"Linear": 0.55, "Nonlinear": 0.5}[row]
            curve = {"curve": [test, last], "training": {"epochs": 2}} if protocol == "paper" else {}
            write_report(tmp_path, cell, sheet="nonlinearity", test=test, **curve)
    item = item_of("nonlinearity", tmp_path, cells)
    lines = [line for line in paired(item, item.tables[0]) if line.startswith("| mutag")]
    assert [line.split(" | ")[3].split(" ")[0] for line in lines] == ["+10.00", "-5.00", "+20.00"]


@pytest.mark.parametrize("gone", ["a split", "a profile"])
def test_what_has_no_pair_is_left_out(tmp_path: Path, gone: str) -> None:
    cells = [*rows_of("gind", 3), *rows_of("gind-published", 3)]
    for cell in cells:
        if cell.model == "gind" or (gone == "a split" and (cell.variant, cell.split) != ("linear", 1)):
            write_report(tmp_path, cell, sheet="nonlinearity", test=0.5)
    item = item_of("nonlinearity", tmp_path, cells)
    assert "| wisconsin | Nonlinear - Linear |  | +0.00 ± 0.00 |" in paired(item, item.tables[0])


def test_one_row_has_no_difference(tmp_path: Path) -> None:
    cells = [Cell("texas", "gind", split) for split in (0, 1)]
    for cell in cells:
        write_report(tmp_path, cell, sheet="heterophilic", test=0.5)
    item = item_of("heterophilic", tmp_path, cells)
    assert paired(item, item.tables[0]) == []
