"""Blocks of a sheet: variants and their keys."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gind.experiments import ConfigError
from gind.experiments.block import flat, nested, variants
from gind.experiments.grid import read_sheet

BLOCK = {"datasets": ["wine"], "models": ["gcn"], "splits": "0"}
NAMES = st.text("abc_", min_size=1, max_size=3)
TABLES = st.recursive(
    st.integers() | st.booleans() | st.text(max_size=3),
    lambda values: st.dictionaries(NAMES, values, min_size=1, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, TABLES, max_size=4))
def test_dotted_keys_are_the_table(table: dict[str, Any]) -> None:
    assert nested(flat(table)) == table


def test_variants_are_named_by_the_sheet_or_by_their_values() -> None:
    assert variants(BLOCK, "x") == [("", ())]
    assert variants(BLOCK | {"as": "a", "set": {"stop": {"tol": 1}}}, "x") == [("a", (("stop.tol", 1),))]
    assert variants(BLOCK | {"vary": {"layers": [2, 4]}}, "x") == [("2", (("layers", 2),)), ("4", (("layers", 4),))]
    named = variants(BLOCK | {"as": "a", "set": {"lr": 1}, "vary": {"b": [1, 2], "c": ["x"]}}, "x")
    assert named == [("a-1-x", (("b", 1), ("c", "x"), ("lr", 1))), ("a-2-x", (("b", 2), ("c", "x"), ("lr", 1)))]
    mistakes: list[dict[str, Any]] = [{"vary": {"layers": 2}}, {"vary": {"layers": []}}, {"sets": {}}]
    for wrong in mistakes:
        with pytest.raises(ConfigError, match="sheet: "):
            variants(BLOCK | wrong, "sheet")


def test_two_results_cannot_have_one_place(tmp_path: Path) -> None:
    block = '[[cells]]\ndatasets = ["wine"]\nmodels = ["gcn"]\nsplits = "0"\nset = {{ layers = {} }}\n'
    path = tmp_path / "s.toml"
    path.write_text(block.format(2) + block.format(3))
    with pytest.raises(ConfigError, match="is there twice"):
        read_sheet(path)
    path.write_text(block.format(2) + block.format(3) + 'as = "deep"\n')
    assert [cell.system for cell in read_sheet(path).cells] == ["gcn", "gcn+deep"]
    path.write_text(block.format(2) + block.format(3) + 'results = "other"\n')
    sheet = read_sheet(path)
    assert [str(sheet.path(cell)) for cell in sheet.cells] == ["s/wine/gcn/0-0", "other/wine/gcn/0-0"]
