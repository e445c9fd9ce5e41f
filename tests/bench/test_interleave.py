"""Turns, repetitions and slopes, with a clock of our own."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from gind.bench.interleave import Contender, differences, interleave
from gind.bench.run import entries
from gind.bench.scaling import slope


class FakeClock:
    """Time passes only where a contender says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def __call__(self) -> float:
        return self.now

    def contender(self, name: str, costs: Sequence[float], prepare: float | None = None) -> Contender:
        """Its n-th run takes costs[n], the last one from then on; with `prepare`, its setup takes that long."""
        left = list(costs)

        def run(_: Any) -> Sequence[Tensor]:
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return ()

        def setup() -> None:
            assert prepare is not None
            self.now += prepare

        return Contender(name, run, None if prepare is None else setup)


def test_every_round_runs_all_in_order() -> None:
    clock = FakeClock()
    contenders = [clock.contender(name, [1.0]) for name in "abc"]
    times = interleave(contenders, 3, clock=clock).seconds
    assert clock.log == list("aabbcc") + list("abc") * 3  # runs before the first round warm up
    assert times == [[1.0] * 3] * 3


def test_the_warm_up_and_what_is_set_up_do_not_count() -> None:
    clock = FakeClock()
    times = interleave([clock.contender("a", [100.0, 2.0, 3.0], prepare=50.0)], 2, clock=clock).seconds
    assert times == [[2.0, 3.0]]


def test_short_runs_are_repeated_and_divided() -> None:
    clock = FakeClock()
    short, long = clock.contender("s", [0.25]), clock.contender("l", [8.0])
    prepared = clock.contender("p", [0.25], prepare=1.0)
    times = interleave([short, long, prepared], 2, least=1.0, clock=clock).seconds
    assert clock.log == list("ssllpp") + list("sssslpppp") * 2
    assert times == [[0.25] * 2, [8.0] * 2, [0.25] * 2]


def test_a_first_run_that_compiles_does_not_say_how_often_to_repeat() -> None:
    clock = FakeClock()
    times = interleave([clock.contender("a", [20.0, 0.3])], 1, least=1.0, clock=clock).seconds
    assert clock.log == ["a"] * (2 + 4)
    assert times == [[pytest.approx(0.3)]]


@pytest.mark.parametrize(("budget", "rounds"), [(1.0, 2), (4.5, 3), (100.0, 6)])
def test_a_budget_ends_the_rounds_but_not_before_two(budget: float, rounds: int) -> None:
    clock = FakeClock()
    contenders = [clock.contender(name, [1.0]) for name in "ab"]
    timing = interleave(contenders, 6, budget=budget, clock=clock)
    assert timing.seconds == [[1.0] * rounds] * 2
    assert timing.best == [1.0, 1.0]


def test_kernels_are_chosen_around_setup_and_run() -> None:
    inside: list[bool] = []

    @contextlib.contextmanager
    def kernels() -> Iterator[None]:
        inside.append(True)
        yield
        inside.pop()

    def look(_: Any = None) -> Sequence[Tensor]:
        assert inside
        return ()

    interleave([Contender("a", look, look, kernels)], 2)
    assert not inside


def test_ratios_are_quotients_of_the_best_times() -> None:
    found = entries("ab", [[2.0, 4.0], [9.0, 3.0]], [None, 7], [None, 0.0])
    assert [entry["seconds"] for entry in found] == [2.0, 3.0]
    assert [entry["ratio"] for entry in found] == [1.0, 1.5]
    assert [entry["peak"] for entry in found] == [None, 7]


def test_differences_are_relative_and_only_of_what_should_be_the_same() -> None:
    def gives(value: float) -> Any:
        return lambda _: (torch.tensor([value]),)

    contenders = [
        Contender("a", gives(2.0)),
        Contender("b", gives(3.0), same=True),
        Contender("c", gives(9.0)),
    ]
    timing = interleave(contenders, 1)
    assert differences(contenders, timing.results) == [None, 0.5, None]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_slope_is_that_of_a_power_law(power: float) -> None:
    sizes = (10, 30, 100, 1000)
    assert slope(sizes, [3e-4 * size**power for size in sizes]) == pytest.approx(power, abs=1e-12)


def test_slope_averages_what_scatters() -> None:
    assert slope((1, 10, 100), (1.0, 20.0, 100.0)) == pytest.approx(1.0)
