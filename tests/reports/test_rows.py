"""Rows of an item that the paper does not have: beside each other, and run by run, against NumPy."""

from pathlib import Path

import numpy as np
import pytest
from report_cases import write_report

from gind import Diffusion, HeavyBall, Implicit
from gind.experiments.items import read_item
from gind.experiments.sheet import Cell, Sheet
from gind.experiments.spec import make_spec
from gind.reports import load_paper
from gind.reports.ledger import Item, open_item
from gind.reports.ledger_page import item_page
from gind.reports.ledger_rows import rows_table

TESTS = np.random.default_rng(0).random((3, 4))
KEYS = (("depth", "stack"),)


def cells() -> list[Cell]:
    before = [Cell("texas", "gind-published", split, row="published") for split in range(4)]
    after = [Cell("texas", "gind-published", split, 0, KEYS, "solved", row="solved") for split in range(4)]
    return [*before, *after, *(Cell("texas", "mlp", split) for split in range(4))]


def test_rows_without_a_name_are_told_apart_and_have_their_own_floor(tmp_path: Path) -> None:
    tests = {
        ("texas", "gind-published"): 0.1,
        ("texas", "gind"): 0.7,
        ("texas", "mlp"): 0.3,
        ("wisconsin", "gind"): 0.6,
    }
    cells = [Cell(dataset, model, 0) for dataset, model in tests]
    for cell in cells:
        write_report(tmp_path, cell, sheet="solved", test=tests[cell.dataset, cell.model])
    item = open_item("solved", tmp_path, load_paper(), Sheet("solved", "Solved", tuple(cells)))
    lines = rows_table(item)
    assert lines[0] == "| dataset | published | certified | certified - published | no graph |"
    assert "| texas | 10.00 | 70.00 | +60.00 | 30.00 |" in lines
    assert "| wisconsin |  | 60.00 |  |  |" in lines


def item_of(results: Path, gone: int | None = None) -> Item:
    for number, (cell, test) in enumerate(zip(cells(), TESTS.ravel().tolist(), strict=True)):
        if number != gone:
            keys = {"model": {"name": cell.model, "depth": "stack"}} if cell.keys else {"model": {"name": cell.model}}
            config = {"dataset": "texas", **keys, "train": {}, "data": {}}
            write_report(results, cell, sheet="solved", test=test, config=config)
    return open_item("solved", results, load_paper(), Sheet("solved", "Solved", tuple(cells())))


def test_rows_stand_beside_each_other_with_their_difference(tmp_path: Path) -> None:
    item = item_of(tmp_path)
    shown = [f"{100 * row.mean():.2f} ± {100 * row.std(ddof=1):.2f}" for row in TESTS]
    apart = 100 * (TESTS[1] - TESTS[0])
    line = f"| texas | {shown[0]} | {shown[1]} | {apart.mean():+.2f} ± {apart.std(ddof=1) / 2:.2f} | {shown[2]} |"
    assert "| dataset | published | solved | solved - published | no graph |" in rows_table(item)
    assert line in rows_table(item)
    assert line in item_page(item, {})


@pytest.mark.parametrize("gone", [0, 5])
def test_a_run_without_its_pair_leaves_no_difference(tmp_path: Path, gone: int) -> None:
    (line,) = [line for line in rows_table(item_of(tmp_path, gone)) if line.startswith("| texas")]
    assert "(3/4)" in line
    assert line.split(" | ")[3] == ""


def test_the_item_changes_what_reaching_the_equilibrium_needs_and_nothing_else() -> None:
    sheet = read_item("solved")
    assert sheet is not None
    changed = {key.partition(".")[0] for cell in sheet.cells for key, _ in cell.keys}
    assert changed == {"depth", "alpha", "regularizer", "edge_norm", "solver", "stop", "adjoint"}
    for dataset in {cell.dataset for cell in sheet.cells}:
        model = make_spec(
            next(c for c in sheet.cells if c.variant == "solved" and c.dataset == dataset).table
        ).new_model("node", 5, 2)
        (layer,) = (module for module in model.modules() if isinstance(module, Diffusion))
        assert layer.has_energy
        assert isinstance(layer.adjoint, Implicit)
        assert layer.stop.measure
        assert isinstance(layer.solver, HeavyBall)
    for cell in (cell for cell in sheet.cells if cell.row == "solved" and cell.split == 0):
        model = make_spec(cell.table).new_model("node", 5, 2)
        (layer,) = (module for module in model.modules() if isinstance(module, Diffusion))
        assert layer.has_energy
        assert layer.stop.measure
        assert (type(layer.solver), type(layer.adjoint)) == (HeavyBall, Implicit)
    by_row = {
        row: {(c.dataset, c.split, c.seed) for c in sheet.cells if c.row == row} for row in ("published", "solved")
    }
    assert by_row["published"] == by_row["solved"]


def test_a_model_can_be_selected_without_its_variants() -> None:
    sheet = read_item("solved")
    assert sheet is not None
    plain = sheet.select([], ["gind-published+"], [])
    assert {cell.system for cell in plain.cells} == {"gind-published"}
    assert {cell.system for cell in sheet.select([], ["gind-published"], []).cells} == {
        "gind-published",
        "gind-published+solved",
    }
