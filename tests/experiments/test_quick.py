"""Sheets made small: what is kept of them, and that every cell is still a run."""

import pytest

from gind.datasets import find
from gind.experiments.items import ITEMS, WITHOUT_RUNS, read_item
from gind.experiments.quick import shrink
from gind.experiments.sheet import Cell, Sheet
from gind.experiments.spec import make_spec


@pytest.mark.parametrize("name", sorted(set(ITEMS) - set(WITHOUT_RUNS)))
def test_a_small_sheet_needs_no_files_and_has_both_profiles(name: str) -> None:
    sheet = read_item(name)
    assert sheet is not None
    small = shrink(sheet, None)
    if name in ("ppi", "graphs"):
        assert small.cells == ()  # no such data comes with the package
        return
    assert {cell.model for cell in small.cells} >= {"gind", "gind-published"} & {cell.model for cell in sheet.cells}
    assert len({cell.model for cell in small.cells}) <= 3
    assert len({small.path(cell) for cell in small.cells}) == len(small.cells)
    for cell in small.cells:
        assert not find(cell.dataset).files
        spec = make_spec(cell.table)
        assert (spec.train.epochs, spec.seed) == (2, 0)


def test_of_candidates_one_is_enough_whatever_they_are_called() -> None:
    cells = [Cell("wine", "gind", 0, 0, (("hidden", k),), f"h{k}", choose=True) for k in (8, 16)]
    cells.append(Cell("wine", "gind", 0, 0, (("dropout", 0.1),), "dropped"))
    small = shrink(Sheet("s", "S", tuple(cells)), None)
    assert {cell.variant for cell in small.cells} == {"h8", "dropped"}
