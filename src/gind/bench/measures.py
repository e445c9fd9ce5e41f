"""All measures by name: what is compared on a case."""

import functools
from collections.abc import Callable

from gind.bench.case import Case
from gind.bench.epoch import GROUPS, epoch
from gind.bench.interleave import Contender
from gind.bench.layer import backward, iteration, solve

__all__ = ["MEASURES", "Measure"]

Measure = Callable[[Case], list[Contender]]

MEASURES: dict[str, Measure] = {
    "iteration": iteration,
    "solve": solve,
    "backward": backward,
    **{name: functools.partial(epoch, entrants=entrants) for name, entrants in GROUPS.items()},
}
