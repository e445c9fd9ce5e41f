"""Inner products, problem by problem."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random
from torch.testing import assert_close

from gind.equilibrium import Blocks, Whole

F64 = torch.float64
SHAPES = [(7,), (7, 3), (7, 3, 2)]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.sampled_from([(), (3,), (2, 2)]),
    st.integers(0, 1000),
)
def test_blocks_are_what_a_loop_over_blocks_gives(index: list[int], rest: tuple[int, ...], seed: int) -> None:
    blocks = Blocks(torch.tensor(index), 5)
    a, b = (random(len(index), *rest, seed=seed + i) for i in range(2))
    mine = [torch.tensor(index) == block for block in range(5)]
    assert_close(blocks.dot(a, b), torch.stack([(a[rows] * b[rows]).sum() for rows in mine]))
    assert_close(blocks.norm(a), torch.stack([a[rows].flatten().norm() for rows in mine]))
    values = random(5, seed=seed)
    spread = blocks.spread(values, a) * torch.ones_like(a)
    for block, rows in enumerate(mine):
        assert torch.equal(spread[rows], values[block].expand_as(spread[rows]))


@pytest.mark.parametrize("shape", [(), *SHAPES], ids=str)
def test_the_whole_is_one_problem(shape: tuple[int, ...]) -> None:
    a, b = random(*shape), random(*shape, seed=1)
    assert Whole().count == 1
    assert_close(Whole().dot(a, b), (a * b).sum().reshape(1))
    assert_close(Whole().norm(a), a.flatten().norm().reshape(1))
    assert_close(Whole().spread(torch.tensor([2.0], dtype=F64), a) * a, 2 * a)


@pytest.mark.parametrize("inner", [Whole(), Blocks(torch.tensor([1, 0, 1, 1, 0, 2, 2]), 3)], ids=["Whole", "Blocks"])
def test_sums_are_float64_and_spreads_follow_the_vector(inner: Whole | Blocks) -> None:
    a = random(7, 3).float()
    assert inner.dot(a, a).dtype == inner.norm(a).dtype == F64
    assert inner.dot(a, a).shape == inner.norm(a).shape == (inner.count,)
    assert inner.spread(inner.norm(a), a).dtype == torch.float32
    assert inner.spread(inner.norm(a) > 0, a).dtype == torch.bool


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_many_small_rows_are_not_lost_beside_a_large_one(shape: tuple[int, ...]) -> None:
    a = torch.full((100_000, *shape[1:]), 1e-2)
    a[0] = 100.0
    rest = a[0].numel()
    exact = rest * (1e4 + (len(a) - 1) * 1e-4)
    assert_close(float(Whole().dot(a, a)), exact, rtol=1e-6, atol=0)
    assert_close(float(Whole().norm(a)), exact**0.5, rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_the_norm_of_float32_neither_overflows_nor_vanishes(shape: tuple[int, ...], size: float) -> None:
    a = torch.full(shape, size)
    assert_close(float(Whole().norm(a)) / size, a.numel() ** 0.5, rtol=1e-6, atol=0)
