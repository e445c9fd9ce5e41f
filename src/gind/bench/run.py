"""`bench`: every measure on every case, the limits of the machine and the curves, as one report."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import torch

from gind.bench import profile, roofline, scaling
from gind.bench.case import BenchError, Case, CaseRequest
from gind.bench.interleave import differences, interleave, once
from gind.bench.machine import describe
from gind.bench.measures import MEASURES
from gind.bench.memory import peak_bytes
from gind.bench.schema import FORMAT, CaseEntry, Entry, FluxRate, Group, Profile, Report
from gind.datasets.table import nearest
from gind.kernels import implementation
from gind.kernels.allocator import keep_memory
from gind.kernels.threads import threads

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
    measures: tuple[str, ...] = tuple(MEASURES)
    memory: bool = True
    memory_of: tuple[str, ...] = ()
    """peak memory of these measures only; none: of all that are made"""
    sizes: roofline.Sizes = roofline.USUAL
    ranges: tuple[scaling.Range, ...] = scaling.USUAL

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise BenchError(f"At least one round is needed, got {self.rounds}.")
        if not self.cases:
            raise BenchError("There is nothing to measure on. Name a shape or a dataset.")
        for name in (*self.measures, *self.memory_of):
            if name not in MEASURES:
                raise BenchError(f"There is no measure {name!r}. {nearest(name, MEASURES)}")
        left = [name for name in self.memory_of if name not in self.measures or not self.memory]
        if left:
            raise BenchError(f"The memory of {left[0]!r} is asked for, and left out as well.")

    def remembers(self, measure: str) -> bool:
        """Whether its peak memory is measured."""
        return self.memory and (not self.memory_of or measure in self.memory_of)


def bench(options: Options, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Measure; `progress` hears what is measured next. The process keeps the memory it frees from then on."""
    if implementation("cpu").startswith("reference"):
        raise BenchError("There are no fused kernels to measure: see gind doctor.")
    keep_memory()
    count = options.threads or torch.get_num_threads()
    machine = describe(count)
    with threads(count):
        progress("nothing yet, reading data")
        cases = [request.open() for request in options.cases]  # refuses before anything is measured
        found = [_groups(case, options, count, progress) for case in cases]
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
        "cases": [_case(*each) for each in zip(cases, found, rates, strict=True)],
        "peaks": peaks,
        "scaling": curves,
    }


def _case(case: Case, found: tuple[list[Group], Profile | None], rate: FluxRate) -> CaseEntry:
    groups, spent = found
    entry: CaseEntry = {
        "name": case.dataset.name,
        "generated": case.request.generated,
        "nodes": case.graph.num_nodes,
        "edges": case.graph.num_edges,
        "channels": case.channels,
        "features": case.dataset.num_features,
        "groups": groups,
        "flux": rate,
    }
    if spent is not None:
        entry["profile"] = spent
    return entry


def _groups(
    case: Case, options: Options, threads: int, progress: Callable[[str], None]
) -> tuple[list[Group], Profile | None]:
    groups: list[Group] = []
    spent = None
    for name, measure in MEASURES.items():
        if name not in options.measures:
            continue
        progress(f"{case.request.name}: {name}")
        contenders = measure(case)
        timing = interleave(contenders, options.rounds, budget=options.budget)
        far = differences(contenders, timing.results)
        if name == profile.MEASURE:
            progress(f"{case.request.name}: {name}, where it goes")
            spent = profile.before_and_after(contenders, options.rounds)
        peaks: list[int | None] = [None] * len(contenders)
        if options.remembers(name):
            progress(f"{case.request.name}: {name}, memory")
            peaks = [peak_bytes(functools.partial(_alone, case.request, name, c.name, threads)) for c in contenders]
        groups.append(
            {"measure": name, "contenders": entries([c.name for c in contenders], timing.seconds, peaks, far)}
        )
    return groups, spent


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
