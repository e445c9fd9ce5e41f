"""What the ledger says in words: which cells are far from the paper, what is known about it, which runs are missing."""

import math
from collections.abc import Iterable, Iterator

from gind.experiments.protocol import CHOICES, LAST
from gind.reports.compare import FAR
from gind.reports.ledger import CERTIFIED, FLOOR, Entry, Item, Place
from gind.reports.paper import PaperTable
from gind.text import plural

__all__ = ["SIDES", "ahead", "curve_remarks", "far", "mismatches", "missing", "ranges", "side"]

SIDES = ("published", "certified")


def side(place: Place) -> str:
    """What the ledger calls a profile of GIND, with its variant."""
    name = SIDES[place.model == CERTIFIED]
    if place.protocol != "honest":
        return f"{name}, {CHOICES[place.protocol]}"
    return f"{name}, {place.variant}" if place.variant else name


def ahead(item: Item, table: PaperTable) -> list[str]:
    """By dataset, of what has all its runs: who is above GIND, and who of GIND is below the floor."""
    first: dict[tuple[str, str], Entry] = {}  # a dataset may have several rows
    for entry in item.entries(table):
        first.setdefault((entry.dataset, entry.protocol), entry)
    above: dict[str, list[str]] = {name: [] for name in reversed(SIDES)}
    below = []
    for (dataset, protocol), entry in first.items():
        if protocol == LAST:  # the runs of another line
            continue
        there = [place for place in item.places if (place.dataset, place.protocol) == (dataset, protocol)]
        means = {place.system: place.mean for place in there if not place.ours}
        others = sorted(((mean, name) for name, mean in means.items() if mean is not None), reverse=True)
        ours = {
            name: place.mean for name, place in zip(SIDES, (entry.published, entry.certified), strict=True) if place
        }
        for name in above:
            own = ours.get(name) or math.inf
            higher = [f"{other} {mean:.2f}" for mean, other in others if mean > own]
            above[name] += [f"- {dataset}: {', '.join(higher)}"] if higher else []
        floor = means.get(FLOOR) or 0.0
        lower = [f"{name} {mean:.2f}" for name, mean in ours.items() if mean is not None and mean < floor]
        below += [f"- {dataset}: {', '.join(lower)} (`{FLOOR}` {floor:.2f})"] if lower else []
    lines = []
    for name, found in above.items():
        title = f"Other systems above the {name} GIND, of those with all runs:"
        lines += [title, "", *found, ""] if found else []
    return lines + (["Below what features alone give:", "", *below, ""] if below else [])


def mismatches(item: Item) -> list[str]:
    """The cells that are more than 2 points from the paper, each with its remark."""
    lines = []
    for table in item.tables:
        if table.datasets and table.unit == "%":
            for entry, place, difference in far(item.entries(table)):
                row = f", {entry.printed}" if len(table.rows) > 1 and entry.printed != "GIND" else ""
                where = f"{abs(difference):.2f} points {'above' if difference > 0 else 'below'} the paper"
                other = place.protocol != "honest"
                name = f"{side(place)}," if other else SIDES[place.model == CERTIFIED]
                # a remark on the model is not one on its runs under another protocol
                text = item.remarks.find(place.system if other else place.model, place.dataset)
                lines.append(f"- {place.dataset}{row}: {name} is {where}." + (f" {text}" if text else ""))
    return [f"More than {FAR:g} points from the paper:", "", *lines, ""] if lines else []


def curve_remarks(item: Item) -> list[str]:
    """What is known about the systems of a curve; the paper has no cells there that they could be far from."""
    several = len({place.dataset for place in item.places}) > 1
    found = {}  # a remark of a model stands once, whatever varies
    for place in item.places:
        for name in (place.model, place.system):
            text = item.remarks.find(name, place.dataset)
            if text:
                found[name + (f", {place.dataset}" if several else "")] = text
    return [*(f"- {name}: {text}" for name, text in found.items()), ""] if found else []


def far(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Place, float]]:
    """The places that differ from the paper by more than 2 points, with the difference.

    Not at the last epoch: that the paper's numbers are of a better one is said with the protocols.
    """
    for entry in (entry for entry in entries if entry.protocol != LAST):
        for place in (entry.published, entry.certified):
            difference = entry.difference(place)
            if place is not None and difference is not None and abs(difference) > FAR:
                yield entry, place, difference


def missing(item: Item) -> list[str]:
    """Which runs are missing: of GIND by name and split, of the others by number."""
    groups: dict[tuple[str, str], list[str]] = {}
    for place in item.ours:
        if place.missing and place.protocol != LAST:  # the runs of another line
            name = side(place) if place.number is None else SIDES[place.model == CERTIFIED]
            which = "all splits" if place.row is None else f"splits {ranges(place.missing)}"
            if place.row is not None and {one.split for one in place.row.singles} & set(place.missing):
                which = f"{_gone(place)} of {plural(place.expected, 'run')}"  # other seeds of these splits are there
            groups.setdefault((name, which), []).append(place.dataset if place.number is None else place.variant)
    lines = [f"- {name}: {which} of {', '.join(names)}" for (name, which), names in groups.items()]
    there = {(place.dataset, place.system) for place in item.places if not place.ours}
    gone = item.collection.missing if item.collection is not None else ()
    others = sum(not there.isdisjoint((cell.dataset, name) for name in (cell.system, cell.chosen)) for cell in gone)
    lines += [f"- other systems: {plural(others, 'run')}"] if others else []
    return ["Missing:", "", *lines, ""] if lines else []


def ranges(numbers: Iterable[int]) -> str:
    """0-2, 5 for 0, 1, 2, 5."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def _gone(place: Place) -> int:
    return place.expected - (0 if place.row is None else place.row.runs)
