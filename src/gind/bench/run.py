"""`bench`: every measure on every case, the limits of the machine and the curves, as one report."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import torch

from gind.bench import roofline, scaling
from gind.bench.case import BenchError, Case, CaseRequest
from gind.bench.interleave import differences, interleave, once
from gind.bench.machine import describe
from gind.bench.measures import MEASURES
from gind.bench.memory import peak_bytes
from gind.bench.schema import FORMAT, CaseEntry, Entry, FluxRate, Group, Report
from gind.kernels import implementation
from gind.kernels.allocator import keep_memory

__all__ = ["Options", "bench", "entries"]


@dataclasses.dataclass(frozen=True)
class Options:
    """How to measure."""

    cases: tuple[CaseRequest, ...]
    rounds: int = 7
    budget: float = math.inf
    """seconds for the rounds of a measure on a case; after them there are no more, but at least two"""
    threads: int | None = None
    """None: as many as torch takes"""
    memory: bool = True
    sizes: roofline.Sizes = roofline.USUAL
    ranges: tuple[scaling.Range, ...] = scaling.USUAL

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise BenchError(f"At least one round is needed, got {self.rounds}.")
        if not self.cases:
            raise BenchError("There is nothing to measure on. Name a shape or a dataset.")


def bench(options: Options, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Measure; `progress` hears what is measured next. The process keeps the memory it frees from then on."""
    if implementation("cpu").startswith("reference"):
        raise BenchError("There are no fused kernels to measure: see gind doctor.")
    keep_memory()
    count = options.threads or torch.get_num_threads()
    machine = describe(count)
    with roofline.threads(count):
        progress("nothing yet, reading data")
        cases = [request.open() for request in options.cases]  # refuses before anything is measured
        groups = [_groups(case, options, count, progress) for case in cases]
        progress("limits of the machine")
        flows = [(case.graph, case.channels) for case in cases]
        peaks, rates = roofline.measure(flows, options.rounds, count, options.sizes)
        curves = []
        for span in options.ranges:
            progress(f"one iteration, {span.variable} growing")
            curves.append(scaling.curve(span, options.rounds))
    return {
        "format": FORMAT,
        "machine": machine,
        "rounds": options.rounds,
        "cases": [_case(*each) for each in zip(cases, groups, rates, strict=True)],
        "peaks": peaks,
        "scaling": curves,
    }


def _case(case: Case, groups: list[Group], rate: FluxRate) -> CaseEntry:
    return {
        "name": case.dataset.name,
        "generated": case.request.generated,
        "nodes": case.graph.num_nodes,
        "edges": case.graph.num_edges,
        "channels": case.channels,
        "features": case.dataset.num_features,
        "groups": groups,
        "flux": rate,
    }


def _groups(case: Case, options: Options, threads: int, progress: Callable[[str], None]) -> list[Group]:
    groups: list[Group] = []
    for name, measure in MEASURES.items():
        progress(f"{case.request.name}: {name}")
        contenders = measure(case)
        timing = interleave(contenders, options.rounds, budget=options.budget)
        far = differences(contenders, timing.results)
        peaks: list[int | None] = [None] * len(contenders)
        if options.memory:
            peaks = [peak_bytes(functools.partial(_alone, case.request, name, c.name, threads)) for c in contenders]
        groups.append(
            {"measure": name, "contenders": entries([c.name for c in contenders], timing.seconds, peaks, far)}
        )
    return groups


def entries(
    names: Sequence[str],
    times: Sequence[list[float]],
    peaks: Sequence[int | None],
    far: Sequence[float | None],
) -> list[Entry]:
    """The best round of each contender, and how many times that of the first it takes."""
    best = [min(taken) for taken in times]
    return [
        {
            "name": name,
            "seconds": seconds,
            "rounds": taken,
            "ratio": seconds / best[0],
            "peak": peak,
            "difference": difference,
        }
        for name, seconds, taken, peak, difference in zip(names, best, times, peaks, far, strict=True)
    ]


def _alone(request: CaseRequest, measure: str, name: str, threads: int) -> Callable[[], object]:
    """One contender, for a process of its own."""
    torch.set_num_threads(threads)
    contenders = MEASURES[measure](request.open())
    return functools.partial(once, next(contender for contender in contenders if contender.name == name))
