"""How sure a mean is: what another seed does to it, and differences split by split."""

import dataclasses
import statistics
from collections.abc import Sequence

from gind.experiments.protocol import LAST
from gind.reports.ledger import Entry, Item, Place
from gind.reports.ledger_words import SIDES, side
from gind.reports.paper import PaperTable
from gind.text import table

__all__ = ["Apart", "apart", "difference", "paired", "seeds", "split_by_split"]

_PAIRED = """\
Points between rows, split by split: the mean, ± its standard error. The splits share nodes, so the errors are too \
small."""
_SEEDS = """\
Mean of the splits, seed by seed, and ± the sample standard deviation of these means: what another seed does to one."""


def paired(item: Item, printed: PaperTable) -> list[str]:
    """Where a dataset has several rows in a table of the paper: each minus the first."""
    together: dict[tuple[str, str], list[Entry]] = {}
    for entry in item.entries(printed):
        together.setdefault((entry.dataset, entry.protocol), []).append(entry)
    rows = [
        [first.dataset, f"{entry.printed} - {first.printed}", *_apart(first, entry)]
        for first, *rest in together.values()
        for entry in rest
        if entry.printed != first.printed
    ]
    if printed.unit == "s" or not any(text for row in rows for text in row[2:]):
        return []
    return [_PAIRED, "", *table(["dataset", "rows", *SIDES], rows, left=2), ""]


def _apart(first: Entry, second: Entry) -> list[str]:
    pairs = ((first.published, second.published), (first.certified, second.certified))
    return [difference(before, after) for before, after in pairs]


def _runs(place: Place | None) -> dict[tuple[int, int], float]:
    """By split and seed, of a place with all its runs."""
    if place is None or place.row is None or place.lacking:
        return {}
    return {(one.split, one.seed): one.test for one in place.row.singles}


@dataclasses.dataclass(frozen=True)
class Apart:
    """How far a row is above another, in points, and the standard error of that mean."""

    mean: float
    error: float | None
    """None of a single pair"""

    @classmethod
    def of(cls, points: Sequence[float]) -> "Apart":
        """The mean of differences."""
        error = statistics.stdev(points) / len(points) ** 0.5 if len(points) > 1 else None
        return cls(statistics.fmean(points), error)

    def __str__(self) -> str:
        return f"{round(self.mean, 2) + 0.0:+.2f}" + ("" if self.error is None else f" ± {self.error:.2f}")


def apart(first: Place | None, second: Place | None) -> Apart | None:
    """Points from the first to the second, run by run; None if a run has no pair, or if some are missing."""
    before, after = _runs(first), _runs(second)
    if before.keys() != after.keys() or not before:
        return None
    return Apart.of([after[run] - before[run] for run in before])


def split_by_split(first: Place | None, second: Place | None) -> Apart | None:
    """The same where the rows have different seeds: a split counts once, with the mean of its seeds."""
    before, after = (_by_split(place) for place in (first, second))
    if before.keys() != after.keys() or not before:
        return None
    return Apart.of([after[split] - before[split] for split in before])


def difference(first: Place | None, second: Place | None) -> str:
    """The same as text; nothing if a run has no pair."""
    found = apart(first, second)
    return "" if found is None else str(found)


def _by_split(place: Place | None) -> dict[int, float]:
    """The mean of the seeds of each split."""
    found: dict[int, list[float]] = {}
    for (split, _), test in _runs(place).items():
        found.setdefault(split, []).append(test)
    return {split: statistics.fmean(tests) for split, tests in found.items()}


def seeds(item: Item) -> list[str]:
    """Of every system with several seeds on the same splits, and all its runs."""
    found = [(place, _by_seed(place)) for place in item.places if place.protocol != LAST]  # the runs of another line
    several = [(place, means) for place, means in found if len(means) > 1]
    if not several:
        return []
    numbers = sorted({seed for _, means in several for seed in means})
    rows = [
        [
            place.dataset,
            side(place) if place.ours else place.system,
            *(f"{means[seed]:.2f}" if seed in means else "" for seed in numbers),
            f"{statistics.stdev(means.values()):.2f}",
        ]
        for place, means in several
    ]
    titles = ["dataset", "system", *(f"seed {seed}" for seed in numbers), "±"]
    return [_SEEDS, "", *table(titles, rows, left=2), ""]


def _by_seed(place: Place) -> dict[int, float]:
    tests: dict[int, dict[int, float]] = {}
    for (split, seed), test in _runs(place).items():
        tests.setdefault(seed, {})[split] = test
    same = len({frozenset(by_split) for by_split in tests.values()}) == 1
    return {seed: statistics.fmean(by_split.values()) for seed, by_split in tests.items()} if same else {}
