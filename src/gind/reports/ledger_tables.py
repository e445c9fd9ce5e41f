"""The tables of an item in Markdown."""

import statistics
from collections.abc import Callable, Sequence

from gind.experiments.protocol import CHOICES, LAST
from gind.experiments.sheet import NESTED
from gind.reports.collect import Row
from gind.reports.curves import Curve, levels, series
from gind.reports.ledger import CERTIFIED, PUBLISHED, Entry, Item, Place
from gind.reports.ledger_words import side
from gind.reports.numbers import spread
from gind.reports.paper import PaperTable, PaperValue
from gind.reports.read import Timing
from gind.text import table

__all__ = [
    "accuracy_of",
    "as_printed",
    "curve_table",
    "others",
    "paper_table",
    "points",
    "seconds_of",
    "splits",
    "timing",
    "value",
    "width",
]

Show = Callable[[Row], str]

_PROTOCOLS = {
    "honest": """\
Epoch chosen on validation: a tenth of the graphs outside of the test fold chooses it; no test label does. Settings \
are the same in all folds: those of the certified GIND were chosen on validation parts of a few folds, whose graphs \
are tested in others, those of the published one by its authors.""",
    NESTED: """\
Epoch and settings chosen on validation: that tenth also chooses, fold by fold, among the candidates in \
experiments/graphs.toml. Nothing of a test fold has a part in what is chosen for it but the list, which is around the \
settings above.""",
    LAST: """\
Last epoch: all graphs outside of the test fold train, for as many epochs as the settings say, and the weights are \
those of the last. Nothing chooses the epoch: these are the runs of the next line, read where their schedule ends; the \
number of epochs is one of the settings above. What is far from the paper is not listed of these lines.""",
    "paper": """\
As the published code does, after Xu et al. (2019), while the paper speaks of LIB-SVM: all graphs outside of the test \
fold train, each fold is tested after every epoch, and all folds are read at the one epoch whose mean test accuracy is \
best. There test labels choose the epoch, so expect less on new graphs; the fewer folds are there, the more the best \
epoch is luck. Residuals are those of the last epoch.""",
}
_ALL_PROTOCOLS = """\
± is over n - 1 everywhere; over n, which is usual with the mean test curve, it is 5 % smaller for ten folds. \
Several of the paper's numbers for other systems are of the mean test curve too: those with a row by it ran both \
ways."""

_SECONDS = """\
Seconds of one training, which ends when validation no longer improves, and milliseconds of one epoch: medians over \
the splits, without compilation. The runs of a split take turns, epoch by epoch, so that all see the same machine."""
_TIMES = """\
Times and epochs are medians over the splits; a training ends when validation no longer improves, so its seconds also \
depend on when that is. The runs of a split take turns, epoch by epoch."""


def accuracy_of(row: Row) -> str:
    """Mean and deviation."""
    return spread(row.test)


def seconds_of(row: Row) -> str:
    """Of one run."""
    return f"{row.seconds_per_run:.1f}"


def value(place: Place | None, show: Show = accuracy_of) -> str:
    """What there is, with the number of runs where some are missing; nothing where the sheet asks for none."""
    if place is None:
        return ""
    if place.row is None:
        return "missing"
    text = show(place.row)
    return f"{text} ({place.lacking})" if text and place.lacking else text


def paper_table(item: Item, printed: PaperTable) -> list[str]:
    """GIND's cells of a table of the paper: paper, published, certified; and the floor, where the item has it."""
    entries = item.entries(printed)
    several = len({entry.printed for entry in entries}) > 1
    if not entries:
        return []
    protocols = [protocol for protocol in CHOICES if any(entry.protocol == protocol for entry in entries)]
    both = protocols != ["honest"]
    timed = printed.unit == "s"
    floors = [None if timed else item.floor(entry) for entry in entries]
    floored = any(floors)
    rows = []
    for entry, floor in zip(entries, floors, strict=True):
        names = [entry.dataset, *([entry.printed] if several else []), *([CHOICES[entry.protocol]] if both else [])]
        cells = [*names, as_printed(entry.paper)]
        for place in (entry.published, entry.certified):
            cells.append(value(place, seconds_of if timed else accuracy_of))
            cells.append(value(place, _milliseconds) if timed else points(entry, place))
        rows.append([*cells, *([value(floor)] if floored else [])])
    beside = "ms per epoch" if timed else "Δ"
    sides = ["published", beside, "certified", beside]
    first = ["dataset", *(["row"] if several else []), *(["protocol"] if both else []), "paper"]
    titles = [*first, *sides, *(["no graph"] if floored else [])]
    note = _SECONDS if timed else printed.note
    heading = [f"### {printed.title}", ""] if printed != item.tables[0] else []
    notes = [f"- {_PROTOCOLS[protocol]}" for protocol in protocols] + [f"- {_ALL_PROTOCOLS}"] if both else []
    above = [*heading, *([note, ""] if note else []), *([*notes, ""] if notes else [])]
    return [*above, *table(titles, rows, left=1 + several + both), "", *_chosen(entries)]


def _chosen(entries: Sequence[Entry]) -> list[str]:
    """Which candidates were chosen, where they were."""
    places = [place for entry in entries for place in (entry.published, entry.certified) if place is not None]
    lines = [f"- {place.dataset}: {place.row.chosen}" for place in places if place.row is not None and place.row.chosen]
    return ["Settings chosen fold by fold, how often:", "", *lines, ""] if lines else []


def others(item: Item, printed: PaperTable) -> list[str]:
    """The other systems, with the paper's number in parentheses."""
    found = item.others(printed)
    if not any(place is not None for cells in found.values() for place, _ in cells.values()):
        return []
    rows = [
        [
            model,
            *(f"{value(place)} {_parenthesis(quoted)}".strip() for place, quoted in row.values()),
        ]
        for model, row in found.items()
    ]
    datasets = list(next(iter(found.values())))
    starred = any(quoted is not None and quoted.rerun for cells in found.values() for _, quoted in cells.values())
    star = ", with \\* where its authors ran the system themselves" if starred else ""
    heading = f"Other systems, in parentheses the paper's number{star}:"
    return [heading, "", *table(["system", *datasets], rows), ""]


def timing(item: Item, printed: PaperTable) -> list[str]:
    """Times of systems that took turns: seconds of the paper's number of epochs, and ratios to the published GIND."""
    measured = {place.system: place.row.timing if place.row else None for place in item.places}
    ran = sorted({timing.epochs for timing in measured.values() if timing is not None})
    assert printed.epochs, f"paper.toml: {printed.name} must say how many epochs its times are of"
    systems = {system: None if timing is None else timing.over(printed.epochs) for system, timing in measured.items()}
    names = {model: row for row, model in item.systems.items()} | {PUBLISHED: "GIND", CERTIFIED: ""}
    widths = {place.system: width(place) for place in item.places}
    for row in printed.rows:
        systems.setdefault(item.systems[row] if row != "GIND" else PUBLISHED, None)
    base, theirs = systems[PUBLISHED], printed.rows["GIND"][-1]
    rows = []
    for system, seconds in systems.items():
        quoted = printed.rows.get(names.get(system, ""), (None,) * len(printed.columns))
        total = quoted[-1]
        ratio = "" if total is None or theirs is None else f"{total.mean / theirs.mean:.2f}"
        here = [widths[system], *_measured(seconds, base)] if system in measured else ["", "", "", "", ""]
        rows.append([system, *map(as_printed, quoted), ratio, *here])
    columns = [name.lower() for name in printed.columns]
    titles = [
        "system",
        *(f"paper: {columns[0]}", *columns[1:], "ratio"),
        *("here: channels", *columns, "ratio"),
    ]
    return [
        *([printed.note, ""] if printed.note else []),
        "Seconds. Here the systems take turns, epoch by epoch, so that all see the same machine; ratios are to the "
        "published GIND. Preprocessing is what the first epoch takes longer than the others, compilation included. "
        f"Training is of {printed.epochs} epochs{_scaled(ran, printed.epochs)}.",
        "",
        *table(titles, rows),
        "",
    ]


def width(place: Place) -> str:
    """Channels of a system; nothing without a run."""
    return "" if place.row is None else str(place.row.settings["model"].get("hidden", ""))


def _scaled(ran: Sequence[int], epochs: int) -> str:
    """What is behind the seconds of so many epochs, where others ran."""
    if ran in ([], [epochs]):
        return ""
    return f", as in the paper; here {' or '.join(map(str, ran))} ran, and their mean counts {epochs} times"


def _measured(timing: Timing | None, base: Timing | None) -> list[str]:
    if timing is None:
        return ["missing", "", "", ""]
    times = [timing.preprocessing, timing.training, timing.total]
    return [*(f"{seconds:.1f}" for seconds in times), "" if base is None else f"{timing.total / base.total:.2f}"]


def curve_table(item: Item, curve: Curve) -> list[str]:
    """A figure as numbers: a line for each value on the axis, a column for each system."""
    by_model = series(item)
    names = list(by_model)
    numbers = sorted({place.number or 0 for places in by_model.values() for place in places})
    shown: list[tuple[str, Show]] = [("accuracy", accuracy_of)]
    shown += [("ms per epoch", _milliseconds), ("epochs", _epochs), ("seconds", seconds_of)] if curve.seconds else []
    shown += [("Dirichlet energy", _energy)] if curve.energy else []
    lines = []
    for title, show in shown:
        rows = [[f"{number:g}", *(value(_at(by_model[name], number), show) for name in names)] for number in numbers]
        rows += [
            [curve.level or place.variant, *(value(place, show) if place.model == name else "" for name in names)]
            for place in levels(item)
        ]
        lines += [*table([f"{title} by {curve.axis}", *names], rows), ""]
    return [*lines, _TIMES, ""] if curve.seconds else lines


def splits(item: Item, narrow: bool = False) -> list[str]:
    """Every run of GIND, split by split: a table, or a list where there is no room for one."""
    there = [(place, place.row.singles) for place in item.ours if place.row is not None]
    numbers = sorted({single.split for _, singles in there for single in singles})
    if len(numbers) < 2:
        return []
    if narrow:
        lines = [f"- {p.dataset}, {side(p)}: {' '.join(f'{one.test:.2f}' for one in singles)}" for p, singles in there]
        return ["Split by split:", "", *lines, ""]
    rows = [
        [
            place.dataset,
            side(place),
            *(", ".join(f"{one.test:.2f}" for one in singles if one.split == number) for number in numbers),
        ]
        for place, singles in there
    ]
    titles = ["dataset", "profile", *(f"split {number}" for number in numbers)]
    return ["<details><summary>Split by split</summary>", "", *table(titles, rows, left=2), "", "</details>", ""]


def _milliseconds(row: Row) -> str:
    return "" if row.seconds_per_epoch is None else f"{1000 * row.seconds_per_epoch:.0f}"


def _epochs(row: Row) -> str:
    return f"{statistics.median(one.epochs for one in row.singles):g}"


def _energy(row: Row) -> str:
    return "" if row.dirichlet is None else f"{row.dirichlet:.3f}"


def _at(places: Sequence[Place], number: float) -> Place | None:
    return next((place for place in places if place.number == number), None)


def as_printed(quoted: PaperValue | None) -> str:
    """A value of the paper, in Markdown."""
    return "" if quoted is None else str(quoted).replace("*", "\\*")


def _parenthesis(quoted: PaperValue | None) -> str:
    return "" if quoted is None else f"({as_printed(quoted)})"


def points(entry: Entry, place: Place | None) -> str:
    """Points above the paper, where no run is missing."""
    difference = entry.difference(place)
    return "" if difference is None else f"{round(difference, 2) + 0.0:+.2f}"  # never -0.00
