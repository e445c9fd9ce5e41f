"""The small matrix product of the numba kernels, on panels of every width that the machine has use for."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gind.kernels.parts import STRIP, multiply
from gind.kernels.tile import PANEL, WIDE

PRECISIONS = [np.float32, np.float64]


def cut(B: NDArray[np.floating], width: int) -> NDArray[np.floating]:
    return np.ascontiguousarray(B.reshape(len(B), -1, width).transpose(1, 0, 2))


def product(a: NDArray[np.floating], B: NDArray[np.floating], panel: int) -> NDArray[np.floating]:
    out = np.full((len(a), B.shape[1]), np.nan, a.dtype)
    panels = cut(B, panel // a.itemsize)
    for first in range(0, len(a), STRIP):
        multiply(a, first, min(first + STRIP, len(a)), panels, out)
    return out


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 11, 12, 25])
@pytest.mark.parametrize("inner", [1, 16, 33])
def test_product_is_that_of_numpy_and_the_same_bits_on_all_panels(
    precision: type[np.floating], rows: int, inner: int
) -> None:
    generator = np.random.default_rng(rows * 100 + inner)
    columns = 2 * WIDE // np.dtype(precision).itemsize
    a = generator.standard_normal((rows, inner)).astype(precision)
    B = generator.standard_normal((inner, columns)).astype(precision)
    exact = a.astype(np.float64) @ B.astype(np.float64)
    narrow, wide = product(a, B, PANEL), product(a, B, WIDE)
    size = np.abs(a).astype(np.float64) @ np.abs(B).astype(np.float64)
    # a chain of `inner` multiply-adds, each off by half a spacing at most
    assert (np.abs(narrow - exact) <= inner * np.finfo(precision).eps * size).all()
    np.testing.assert_array_equal(narrow, wide)


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda kind: kind.__name__)
def test_a_row_has_the_same_bits_whatever_rows_surround_it(precision: type[np.floating]) -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((13, 32)).astype(precision)
    B = generator.standard_normal((32, WIDE // np.dtype(precision).itemsize)).astype(precision)
    for panel in (PANEL, WIDE):
        whole = product(a, B, panel)
        for i in range(len(a)):
            np.testing.assert_array_equal(product(a[i : i + 1], B, panel)[0], whole[i])
