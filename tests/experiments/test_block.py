"""Blocks of a sheet: variants and their keys."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gind.experiments import ConfigError
from gind.experiments.block import flat, nested, variants
from gind.experiments.sheet import read_sheet

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


def test_keys_vary_in_the_order_of_their_names() -> None:
    named = variants(BLOCK | {"vary": {"b": [1, 2], "a": ["x", "y"]}}, "x")
    assert [name for name, _ in named] == ["x-1", "x-2", "y-1", "y-2"]


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"vary": {"layers": 2}}, r"vary\.layers"),
        ({"vary": {"layers": []}}, r"vary\.layers"),
        ({"vary": {"solver": [{"kind": "picard"}]}}, r"vary\.solver"),
        ({"vary": {"fractions": [[0.5, 0.2]]}}, r"vary\.fractions"),
        ({"vary": 3}, "vary"),
        ({"set": 3}, "set"),
        ({"set": {"x": [{"a": 1}]}}, r"set\.x"),
        ({"set": {"split": 3}}, "split"),
        ({"set": {"model": "gat"}}, "model"),
        ({"set": {"lr": 0.1}, "vary": {"lr": [0.1]}}, "lr is in set and in vary"),
        ({"set": {"solver": "picard"}, "vary": {"solver": {"alpha": [0.1]}}}, r"solver and solver\.alpha"),
        ({"vary": {"solver": ["picard"]}, "set": {"solver": {"alpha": 0.1}}}, r"solver and solver\.alpha"),
        ({"sets": {}}, "may have"),
        ({"splits": 0}, "splits"),
        ({"datasets": "texas"}, "datasets"),
        ({"datasets": []}, "datasets"),
        ({"models": [1]}, "models"),
        ({"seeds": 3}, "seeds"),
        ({"seeds": [True]}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"as": 1}, "as"),
        ({"row": 1}, "row"),
        ({"results": ".."}, "results"),
        ({"results": "../other"}, "results"),
        ({"choose": 1}, "choose"),
        ({"choose": "../up"}, "choose"),
        ({"as": "../../up"}, "named by letters"),
        ({"vary": {"name": ["a/b"]}}, "named by letters"),
    ],
)
def test_a_block_of_the_wrong_shape_names_its_key(wrong: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=rf"sheet: .*{key}"):
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
