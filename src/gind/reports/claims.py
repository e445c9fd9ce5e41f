"""What the paper concludes from its experiments, and whether the runs here say so too: computed, for both profiles."""

import dataclasses
from collections.abc import Callable, Sequence

from gind.reports.ledger import CERTIFIED, PUBLISHED, Item, Place
from gind.reports.ledger_spread import Apart, apart, split_by_split
from gind.reports.ledger_tables import width
from gind.reports.numbers import spread
from gind.text import table

__all__ = ["claims"]

Answer = Callable[[Item, str], str]

_HOW = """\
*yes* and *no* are said of a difference that is more than twice its standard error over the splits, *not clear* of a \
smaller one. Other systems count where they have all their runs on a dataset; on graphs the epoch is chosen on \
validation for all, or on the mean test curve for all that ran so. No settings for chains are published, and times are \
of one thread of a CPU. These are readings of sentences of the paper; its tables are below, number by number."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and how a profile of GIND answers it: with nothing, if runs are missing for that."""

    says: str
    item: str
    answer: Answer


def claims(items: Sequence[Item]) -> list[str]:
    """A line for each claim whose item has runs of GIND."""
    named = {item.name: item for item in items}
    rows = []
    for claim in CLAIMS:
        item = named.get(claim.item)
        if item is not None:
            answers = [claim.answer(item, model) for model in (PUBLISHED, CERTIFIED)]
            rows += [[claim.says, item.label, *answers]] if any(answers) else []
    if not rows:
        return []
    title = "What the paper says of its experiments, and what the same comparisons give here:"
    return [title, "", *table(["the paper says", "where", "published", "certified"], rows, left=4), "", _HOW, ""]


def _first_on(least: int, protocol: str = "honest") -> Answer:
    """Whether GIND is above every other system on so many datasets of the table, and who is above it on the rest."""

    def answer(item: Item, model: str) -> str:
        datasets = item.tables[0].datasets
        ahead, behind = 0, []
        for dataset in datasets:
            own = _place(item, model, "" if protocol == "honest" else protocol, dataset, protocol)
            others = [place for place in item.places if place.dataset == dataset and not place.ours]
            there = [place for place in others if place.protocol == protocol and place.mean is not None]
            if own is None or own.mean is None or not there:
                continue
            best = max(there, key=lambda place: place.mean or 0.0)
            if (best.mean or 0.0) > own.mean:
                behind.append(f"{best.system} on {dataset} by {split_by_split(best, own)}".replace("by -", "by "))
            else:
                ahead += 1
        total = ahead + len(behind)
        if not total:
            return ""
        verdict = "yes: " if ahead >= least else "no: " if ahead + len(datasets) - total < least else ""
        return f"{verdict}first on {ahead} of {total}" + (f"; behind {', '.join(behind)}" if behind else "")

    return answer


def _all_right(length: str) -> Answer:
    """The accuracy on chains of this length."""

    def answer(item: Item, model: str) -> str:
        place = _place(item, model, length)
        if place is None or place.row is None or place.mean is None:
            return ""
        return f"{'yes' if round(place.mean, 2) == 100 else 'no'}: {spread(place.row.test)}"

    return answer


def _row_above(row: str, other: str) -> Answer:
    """By how much one row of a table is above another, dataset by dataset."""

    def answer(item: Item, model: str) -> str:
        entries = [entry for printed in item.tables[:1] for entry in item.entries(printed)]
        side = "published" if model == PUBLISHED else "certified"
        found = {}
        for dataset in dict.fromkeys(entry.dataset for entry in entries):
            pair = [
                next((getattr(e, side) for e in entries if (e.dataset, e.printed) == (dataset, name)), None)
                for name in (other, row)
            ]
            difference = apart(*pair)
            if difference is not None:
                found[dataset] = difference
        return "; ".join(f"{name}: {_verdict(difference)}, {difference}" for name, difference in found.items())

    return answer


def _faster(item: Item, model: str) -> str:
    """Which of the systems that take turns need less time than GIND does."""
    timings = {place.system: place.row.timing for place in item.places if place.row is not None}
    channels = {place.system: f" ({width(place)} channels)" for place in item.places if width(place)}
    own = timings.get(model)
    others = {
        name: timing.total / own.total
        for name, timing in timings.items()
        if own is not None and timing is not None and name.partition("+")[0] not in (PUBLISHED, CERTIFIED)
    }
    if not others:
        return ""
    quicker = [name for name, ratio in others.items() if ratio < 1]
    ratios = ", ".join(f"{name} {ratio:.2f}{channels.get(name, '')}" for name, ratio in others.items())
    return f"{'no' if quicker else 'yes'}: the others take, as multiples of its time{channels.get(model, '')}, {ratios}"


def _overhead(item: Item, model: str) -> str:
    """The time of an epoch of the nonlinear model over that of the linear one."""
    ratios = {}
    for dataset in dict.fromkeys(place.dataset for place in item.places):
        places = [_place(item, model, variant, dataset) for variant in ("linear", "")]
        times = [None if place is None or place.row is None else place.row.seconds_per_epoch for place in places]
        if times[0] and times[1]:
            ratios[dataset] = times[1] / times[0]
    if not ratios:
        return ""
    return "an epoch takes, as multiples of a linear one, " + ", ".join(f"{r:.2f} on {d}" for d, r in ratios.items())


def _best_number(number: str) -> Answer:
    """Which value on the axis of a curve has the highest mean, and how far the one of the paper is from it."""

    def answer(item: Item, model: str) -> str:
        there = {place.variant: place for place in item.ours if place.model == model and place.number is not None}
        means = {name: place.mean for name, place in there.items() if place.mean is not None}
        if number not in means or len(means) < len(there):
            return ""
        best = max(means, key=lambda name: means[name] or 0.0)
        if best == number:
            return f"yes: {means[best]:.2f}"
        difference = apart(there[best], there[number])
        return f"{best} has the highest mean; {number} is {difference} from it"

    return answer


def _verdict(difference: Apart) -> str:
    if difference.error is None or abs(difference.mean) <= 2 * difference.error:
        return "not clear"
    return "yes" if difference.mean > 0 else "no"


def _place(item: Item, model: str, variant: str, dataset: str = "", protocol: str = "honest") -> Place | None:
    """The runs of a profile by a protocol; of any dataset, if none is named."""
    wanted = [p for p in item.ours if (p.model, p.variant, p.protocol) == (model, variant, protocol)]
    return next((place for place in wanted if not dataset or place.dataset == dataset), None)


CLAIMS: Sequence[Claim] = (
    Claim("GIND outperforms all other systems on all heterophilic datasets", "heterophilic", _first_on(5)),
    Claim("GIND is the best in 3 of 5 graph classifications", "graphs", _first_on(3)),
    Claim("the same, with epochs by the mean test curve", "graphs", _first_on(3, "paper")),
    Claim("the Laplacian regularizer improves the accuracy", "regularizers", _row_above("Lap", "None")),
    Claim("decorrelation improves it slightly", "regularizers", _row_above("Dec", "None")),
    Claim("GIND keeps 100 % on chains of length 200", "chains", _all_right("200")),
    Claim("GIND trains faster than systems with exact gradients", "training-time", _faster),
    Claim("nonlinear diffusion has a clear advantage over linear", "nonlinearity", _row_above("Nonlinear", "Linear")),
    Claim("the nonlinearity costs next to nothing", "nonlinearity", _overhead),
    Claim("L = 4 steps of the phantom gradient are best", "backprop-steps", _best_number("4")),
)
