"""Bad input is refused at the door, with a sentence that says what to do; options cannot change under a solve."""

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from untyped import untyped

from gind.equilibrium import (
    Anderson,
    Blocks,
    Broyden,
    Contraction,
    HeavyBall,
    Implicit,
    Nesterov,
    NewtonCG,
    Phantom,
    Picard,
    Stop,
    Unrolled,
    Whole,
    fixed_point,
)

Z0 = torch.zeros(3)


def solve(fn: Any = torch.cos, z0: Any = Z0, **options: Any) -> Callable[[], object]:
    """A call that waits for its turn."""
    return lambda: fixed_point(fn, z0, **options)


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "fn not callable": (solve(fn=3), TypeError, r"`fn` must be a map.*got int"),
    "fn a tensor": (solve(fn=Z0), TypeError, r"`fn` must be a map.*got Tensor"),
    "z0 an int tensor": (solve(z0=torch.zeros(3, dtype=torch.int64)), TypeError, r"floating point.*got torch.int64"),
    "z0 a list": (solve(z0=[0.0]), TypeError, r"`z0` must be a floating point tensor, got list"),
    "z0 NaN": (solve(z0=torch.tensor([0.0, torch.nan])), ValueError, r"NaN or infinity.*zeros"),
    "z0 infinite": (solve(z0=torch.tensor([0.0, -torch.inf])), ValueError, r"NaN or infinity.*zeros"),
    "solver a class": (solve(solver=Anderson), TypeError, r"such as Anderson\(\).*class Anderson \(call it\)"),
    "solver a name": (solve(solver="anderson"), TypeError, r"such as Anderson\(\).*'anderson'"),
    "stop a float": (solve(stop=1e-6), TypeError, r"must be a Stop\(tol, max_steps\), got 1e-06"),
    "adjoint a class": (solve(adjoint=Implicit), TypeError, r"such as Implicit\(\).*class Implicit \(call it\)"),
    "throw unknown": (solve(throw="shout"), ValueError, r"'raise', 'warn', 'ignore', got 'shout'"),
    "throw a bool": (solve(throw=True), ValueError, r"'raise', 'warn', 'ignore', got True"),
    "Nesterov, plain map": (solve(solver=Nesterov()), TypeError, r"Nesterov needs an Energy.*Use Anderson\(\)"),
    "NewtonCG, plain map": (solve(solver=NewtonCG()), TypeError, r"NewtonCG needs an Energy.*Use Anderson\(\)"),
    "Nesterov, contraction": (
        solve(fn=Contraction(torch.cos, 0.9), solver=Nesterov()),
        TypeError,
        r"Nesterov needs an Energy.*Use Anderson\(\)",
    ),
    "tol negative": (lambda: Stop(tol=-1e-6), ValueError, r"`tol` must be a number >= 0, got -1e-06"),
    "tol NaN": (lambda: Stop(tol=float("nan")), ValueError, r"`tol` must be a number >= 0, got nan"),
    "max_steps negative": (lambda: Stop(max_steps=-1), ValueError, r"`max_steps` must be an int >= 0, got -1"),
    "max_steps a float": (lambda: untyped(Stop)(max_steps=10.0), ValueError, r"must be an int >= 0, got 10.0"),
    "max_steps a bool": (lambda: Stop(max_steps=True), ValueError, r"must be an int >= 0, got True"),
    "Phantom(0)": (lambda: Phantom(0), ValueError, r"`steps` must be an int >= 1, got 0"),
    "Phantom damping 0": (lambda: Phantom(1, damping=0.0), ValueError, r"`damping` must be a positive number.*default"),
    "Anderson(0)": (lambda: Anderson(0), ValueError, r"`memory` must be an int >= 1, got 0.*Picard\(\)"),
    "Anderson beta": (lambda: Anderson(beta=-0.5), ValueError, r"`beta` must be a positive number.*default, got -0.5"),
    "Broyden(0)": (lambda: Broyden(0), ValueError, r"`memory` must be an int >= 1, got 0"),
    "Broyden beta": (lambda: Broyden(beta=float("nan")), ValueError, r"`beta` must be a positive number.*got nan"),
    "Picard(-1)": (lambda: Picard(-1), ValueError, r"`alpha` must be a positive number, or None.*got -1"),
    "Picard(0)": (lambda: Picard(0.0), ValueError, r"`alpha` must be a positive number"),
    "NewtonCG forcing": (lambda: NewtonCG(forcing=1.0), ValueError, r"`forcing` must lie between 0 and 1"),
    "NewtonCG inner steps": (lambda: NewtonCG(inner_steps=0), ValueError, r"`inner_steps` must be an int >= 1"),
    "NewtonCG search steps": (lambda: NewtonCG(search_steps=0), ValueError, r"`search_steps` must be an int >= 1"),
    "Contraction factor 1": (lambda: Contraction(torch.cos, 1.0), ValueError, r"\[0, 1\), got 1.0.*bare map"),
    "Contraction factor < 0": (lambda: Contraction(torch.cos, -0.1), ValueError, r"\[0, 1\), got -0.1.*bare map"),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# what used to pass the door and fail behind it, or not to fail at all
SLIPS: dict[str, tuple[Callable[[], object], str]] = {
    "f(z) of another shape": (solve(fn=lambda z: torch.full((3, 1), 0.5)), r"shape"),
    "f(z) of another dtype": (solve(fn=lambda z: z.double().cos()), r"float64"),
    "f(z) no tensor": (solve(fn=lambda z: 0.5), r"float"),
    "inner a class": (solve(inner=Whole), r"`inner`"),
    "inner of too few rows": (solve(inner=Blocks(torch.tensor([0, 1]), 2)), r"rows"),
    "inner of too few problems": (lambda: Blocks(torch.tensor([0, 1, 2]), 2), r"size|problems"),
    "memory a float": (lambda: untyped(Anderson)(2.5), r"memory.*2\.5"),
    "steps a float": (lambda: untyped(Phantom)(1.5), r"steps.*1\.5"),
    "stop a number": (lambda: untyped(Implicit)(1e-6), r"`stop` must be a Stop.*got 1e-06"),
    "far a string": (lambda: untyped(NewtonCG)(far="x"), r"`far` must be a number >= 0, got 'x'"),
    "far negative": (lambda: NewtonCG(far=-0.1), r"`far` must be a number >= 0, got -0\.1"),
    "forcing a string": (lambda: untyped(NewtonCG)("x"), r"`forcing` must lie between 0 and 1, got 'x'"),
    "tol a string": (lambda: untyped(Stop)("1e-5"), r"`tol` must be a number"),
}


@pytest.mark.parametrize(("call", "message"), SLIPS.values(), ids=SLIPS)
def test_bad_input_does_not_slip_through(call: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


OPTIONS = [
    Stop(1e-3, 7),
    Picard(0.5),
    Nesterov(),
    HeavyBall(),
    Anderson(3, 0.5),
    NewtonCG(0.25),
    Broyden(3, 0.5),
    Implicit(Stop(1e-3, 7)),
    Phantom(3, 0.5),
    Unrolled(),
    Whole(),
    Contraction(torch.cos, 0.5),
]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: type(option).__name__)
def test_options_are_frozen_values(option: Any) -> None:
    twin = dataclasses.replace(option)
    assert twin is not option
    assert twin == option
    assert hash(twin) == hash(option)
    assert len({option, twin}) == 1
    fields = [field.name for field in dataclasses.fields(option)]
    for field in [*fields, "anything"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(option, field, 1)


def test_options_that_differ_are_different() -> None:
    assert len({Stop(), Stop(1e-3), Picard(), Picard(0.5), Anderson(), Anderson(6), Broyden(), Broyden(6)}) == 8
    assert Phantom(3) != Phantom(4)
    assert Implicit() != Implicit(Stop(1e-3))


def test_blocks_are_frozen_and_hashable_by_identity() -> None:
    first, second = (cast(Any, Blocks(torch.tensor([0, 1]), 2)) for _ in range(2))
    assert len({first, second, first}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.size = 3


def test_a_solution_cannot_be_changed() -> None:
    solution: Any = fixed_point(torch.cos, Z0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        solution.steps = 0


def test_the_defaults_are_what_the_entry_says() -> None:
    explicit = fixed_point(torch.cos, Z0, solver=Anderson(), stop=Stop(1e-5, 200), adjoint=Implicit(), inner=Whole())
    default = fixed_point(torch.cos, Z0)
    assert torch.equal(default.value, explicit.value)
    assert (default.steps, default.status, default.tol) == (explicit.steps, explicit.status, 1e-5)


def test_answers_can_be_compared_and_kept_in_sets() -> None:
    """By what they are: tensors have no single answer to whether they are equal."""
    first, second = (fixed_point(torch.cos, torch.zeros(3, 1)) for _ in range(2))
    assert first == first
    assert first != second
    assert len({first, second}) == 2
    assert first.gradient != second.gradient
