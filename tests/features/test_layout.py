"""`choose_layout`, `density` and `check`, and everything the input layer refuses."""

from typing import Any

import pytest
import torch
from graphs import MODEST
from hypothesis import given
from matrices import features, matrices
from torch import Tensor

from gind.features import CROSSOVER, check, choose_layout, density, project

LAYOUTS = (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
SPARSE, DENSE = features(300, 300, 0.02), features(300, 300, 0.5)


def to_layout(x: Tensor, layout: torch.layout) -> Tensor:
    return x if layout == torch.strided else x.to_sparse(layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("x", [SPARSE, DENSE, features(20, 20, 0.02)], ids=["sparse", "dense", "small"])
def test_every_layout_leads_to_the_same_choice(x: Tensor, layout: torch.layout) -> None:
    given = to_layout(x, layout)
    chosen = choose_layout(given)
    assert chosen.layout == (torch.sparse_csr if x is SPARSE else torch.strided)
    assert torch.equal(chosen.to_dense(), x)
    assert choose_layout(chosen) is chosen
    assert (chosen is given) == (chosen.layout == layout)


@pytest.mark.parametrize(("offset", "layout"), [(0, torch.sparse_csr), (1, torch.strided)])
def test_the_rule_is_the_crossover(offset: int, layout: torch.layout) -> None:
    x = torch.zeros(400, 400)
    entries = int(CROSSOVER * x.numel()) + offset
    x.view(-1)[:entries] = 1
    assert density(x) == entries / x.numel()
    assert choose_layout(x).layout == layout


@MODEST
@given(x=matrices())
def test_density_counts_entries(x: Tensor) -> None:
    assert density(x) == len(x.values()) / max(x.numel(), 1)
    assert density(x.to_dense()) == int((x.to_dense() != 0).sum()) / max(x.numel(), 1)
    check(x)


def test_repeated_entries_of_coo_add_up() -> None:
    index = torch.zeros(2, 90_000, dtype=torch.long)
    x = torch.sparse_coo_tensor(index, torch.ones(90_000), (300, 300), check_invariants=True)
    assert density(x) == 1 / 90_000
    assert choose_layout(x).values().tolist() == [90_000]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_stays_dense(dtype: torch.dtype) -> None:
    x = SPARSE.to(dtype)
    assert choose_layout(x) is x
    with pytest.raises(TypeError, match="must be float32 or float64"):
        project(x.to_sparse_csr(), torch.zeros(2, 300, dtype=dtype))


def test_learned_features_stay_dense() -> None:
    x = SPARSE.clone().requires_grad_()
    assert choose_layout(x) is x
    (grad,) = torch.autograd.grad(project(x, torch.ones(2, 300, dtype=x.dtype)).sum(), x)
    assert torch.equal(grad, torch.full_like(x, 2))


def test_a_choice_made_in_inference_mode_can_be_trained_on() -> None:
    x = SPARSE.clone()
    with torch.inference_mode():
        chosen = choose_layout(x)
    weight = torch.ones(2, 300, dtype=x.dtype, requires_grad=True)
    torch.autograd.backward(project(chosen, weight).sum())
    assert weight.grad is not None


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite_is_refused_with_its_row(layout: torch.layout, bad: float) -> None:
    x = features(6, 5, 0.5)
    x[4, 2] = x[5, 0] = bad
    with pytest.raises(ValueError, match="first at node 4"):
        choose_layout(to_layout(x, layout))


def test_changed_features_are_checked_again() -> None:
    x = features(6, 5, 0.5).to_sparse_csr()
    weight = torch.ones(2, 5, dtype=torch.float64)
    project(x, weight)
    x.values()[0] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        project(x, weight)
    y = features(6, 5, 0.5).to_sparse_csr()
    project(y, weight)
    y.col_indices()[0] = 77
    with pytest.raises(ValueError, match="not those of a sparse matrix"):
        project(y, weight)


CROW, COL = torch.tensor([0, 2, 2, 3]), torch.tensor([0, 3, 1])


@pytest.mark.parametrize(
    ("crow", "col"),
    [
        (CROW, [0, 99, 1]),
        (CROW, [0, -1, 1]),
        (CROW, [3, 0, 1]),
        (CROW, [0, 0, 1]),
        ([0, 2, 1, 3], COL),
        ([0, 2, 2, 9], COL),
    ],
    ids=["column too large", "negative column", "unsorted", "repeated", "rows decrease", "rows too long"],
)
def test_indices_that_torch_did_not_check_are_refused(crow: Any, col: Any) -> None:
    values = torch.ones(3)
    x = torch.sparse_csr_tensor(torch.as_tensor(crow), torch.as_tensor(col), values, (3, 4), check_invariants=False)
    for call in (check, choose_layout, lambda x: project(x, torch.ones(2, 4))):
        with pytest.raises(ValueError, match="not those of a sparse matrix"):
            call(x)


@pytest.mark.parametrize(
    "x", [[[1.0]], torch.ones(2, 2, dtype=torch.long), torch.ones(2, 2, dtype=torch.cfloat)], ids=str
)
def test_not_floating_point_is_refused(x: Any) -> None:
    with pytest.raises(TypeError, match="floating point"):
        choose_layout(x)


def test_other_shapes_and_layouts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(nodes, channels\)"):
        choose_layout(torch.ones(3))
    with pytest.raises(TypeError, match="dense, COO, CSR or CSC"):
        choose_layout(torch.eye(4).to_sparse_bsr((2, 2)))
    with pytest.raises(ValueError, match="dense rows or blocks"):
        choose_layout(torch.eye(4).to_sparse(1))


def test_project_refuses_what_does_not_fit() -> None:
    x, weight = features(6, 5, 0.5).to_sparse_csr(), torch.ones(2, 5, dtype=torch.float64)
    with pytest.raises(ValueError, match="data and get no gradient"):
        project(x.clone().requires_grad_(), weight)
    for p in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"\[0, 1\)"):
            project(x, weight, dropout=p)
    with pytest.raises(TypeError, match="choose_layout"):
        project(x.to_sparse_csc(), weight)
    with pytest.raises(TypeError, match=r"float64 but the parameters are torch\.float32"):
        project(x, weight.float())
    with pytest.raises(ValueError, match=r"\(6, 5\) and \(2, 4\)"):
        project(x, weight[:, :4])
    with pytest.raises(ValueError, match=r"`bias` must have shape \(2,\)"):
        project(x, weight, torch.ones(3, dtype=torch.float64))
