"""Where the time of an epoch goes: the profiler's operators, summed into a few groups, of two contenders.

A group is a list of operators, or of ranges: the optimizer, the fused operators, the compiled steps (in which products
and edges cannot be told apart), the dropout and first product of the features. The outermost of them that an operator
runs in has its time; what runs in none is the rest. The gradient of the features belongs to them as well: autograd
gives the two directions of an operator the same number.
"""

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function

from gind.bench.interleave import Contender
from gind.bench.layer import STORED
from gind.bench.published import PUBLISHED
from gind.bench.schema import Profile, Spent

__all__ = ["GROUPS", "MEASURE", "before_and_after", "spent"]

MEASURE = "published epoch"

FEATURES = "features: dropout, first product"
PRODUCTS = "products of matrices"
GATHER = "gather and scatter along edges"
ELEMENTS = "tanh and other arithmetic"
FUSED = "fused edge operators"
STEPS = "compiled steps: products and edges"
OPTIMIZER = "optimizer"
REST = "rest"
BETWEEN = "Python, between operators"
GROUPS = (FEATURES, PRODUCTS, GATHER, ELEMENTS, FUSED, STEPS, OPTIMIZER, REST, BETWEEN)

_RANGES = {  # how a name begins
    "gind::features": FEATURES,
    "gind::thin": FEATURES,
    "gind::multiply": FEATURES,
    "gind::flux": FUSED,
    "gind::steps": STEPS,
    "gind::solve": STEPS,
    "Optimizer.": OPTIMIZER,
}
_OPERATORS = {  # without aten:: before and _ after
    PRODUCTS: "addmm baddbmm bmm dot mm mv",
    GATHER: "gather index index_add index_put _index_put_impl index_select index_select_backward scatter scatter_add",
    ELEMENTS: "abs add addcdiv addcmul any bernoulli clamp clamp_min copy div elu elu_backward eq equal exp fill ge gt "
    "le lerp lt mean mul native_dropout native_dropout_backward ne neg pow random reciprocal rsqrt sqrt std sub sum "
    "tanh tanh_backward uniform var where zero",
}
_WHOLE, _GRADIENT = "gind::whole", "autograd::engine::evaluate_function: "
_GROUP = {name: group for group, names in _OPERATORS.items() for name in names.split()}
_ROUNDS = 3


def before_and_after(contenders: Sequence[Contender], rounds: int) -> Profile:
    """The published epoch with edges stored and with ours, the best of up to three rounds in turns.

    The contenders are those of `MEASURE`, and have run before. A round before the first does not count: the profiler's
    own memory lies between the tensors, and the process takes new memory for some of them.
    """
    pair = [next(each for each in contenders if each.name == name) for name in (STORED, PUBLISHED)]
    tried = [[spent(contender) for contender in pair] for _ in range(1 + min(rounds, _ROUNDS))]
    before, after = (min(runs, key=lambda run: run["seconds"]) for runs in zip(*tried[1:], strict=True))
    return {"measure": MEASURE, "before": before, "after": after}


def spent(contender: Contender) -> Spent:
    """Where the time of one run goes; its preparation does not count."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or it writes to the terminal
    with contender.kernels():
        ready = None if contender.setup is None else contender.setup()
        # no shapes: they are kept in pieces between tensors, and tensors of edges then need new memory all the time
        with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as profiler, record_function(_WHOLE):
            contender.run(ready)
    whole = next(event for event in profiler.events() or () if event.name == _WHOLE)
    times: dict[str, list[float]] = {group: [] for group in GROUPS}
    for group, microseconds in _own_times(whole, None, set()):
        times[group].append(microseconds)
    groups = {group: 1e-6 * math.fsum(taken) for group, taken in times.items()}
    return {"name": contender.name, "seconds": 1e-6 * whole.cpu_time_total, "groups": groups}


def _own_times(event: Any, within: str | None, numbers: set[int]) -> Iterator[tuple[str, float]]:
    """Group and microseconds of an event and all below; `numbers` are autograd's of the features seen so far."""
    if within is None:
        of_features = event.name.startswith(_GRADIENT) and event.sequence_nr in numbers
        within = FEATURES if of_features else _group(event.name)
    if within == FEATURES and event.sequence_nr >= 0:
        numbers.add(event.sequence_nr)
    yield within or (BETWEEN if event.name == _WHOLE else REST), event.self_cpu_time_total
    for child in event.cpu_children:  # in the order of time
        yield from _own_times(child, within, numbers)


def _group(name: str) -> str | None:
    operator = _GROUP.get(name.removeprefix("aten::").removesuffix("_"))
    return operator or next((group for start, group in _RANGES.items() if name.startswith(start)), None)
